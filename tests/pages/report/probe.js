// Appended by the test to a copy of the page: its texts, tables and charts as they were rendered, as JSON in the page.
(() => {
  const box = (element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return { left, right, top, bottom };
  };
  const visible = (element) => element.checkVisibility();
  const all = (root, selector, make) => [...root.querySelectorAll(selector)].filter(visible).map(make);
  // What is behind a text: the nearest ground that is painted.
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (color !== "rgba(0, 0, 0, 0)") return color;
    }
    return "rgb(255, 255, 255)";
  };
  const leaf = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  const text = (element) => ({
    ...box(element), text: element.textContent.trim().slice(0, 60), color: getComputedStyle(element).color,
    ground: ground(element), scrolls: !!element.closest(".scroll"),
  });
  const tick = (element) => ({ ...box(element), text: element.textContent });
  const line = (element) => {
    const { stroke, strokeDasharray } = getComputedStyle(element);
    return { ...box(element), look: `${stroke} ${strokeDasharray}` };
  };
  const chart = (figure) => ({
    ...box(figure), caption: figure.querySelector("figcaption").textContent,
    role: figure.querySelector(".chart > svg").getAttribute("role"),
    ground: box(figure.querySelector("rect.ground")), fill: getComputedStyle(figure.querySelector("rect.ground")).fill,
    ends: all(figure, "text.end", tick),
    ticks: all(figure, "text.tick", (element) => ({ ...tick(element), fill: getComputedStyle(element).fill })),
    lines: all(figure, "polyline.line", line),
    legend: all(figure, ".legend li", (item) => ({ text: item.textContent.trim(), ...line(item.querySelector("line")) })),
  });
  for (const details of document.querySelectorAll("details")) details.open = true;
  const out = parent.document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify({
    width: innerWidth,
    scroll_width: document.scrollingElement.scrollWidth,
    texts: [...document.querySelectorAll("body *:not(script):not(style)")]
      .filter((element) => !element.closest("svg") && visible(element) && leaf(element)).map(text),
    tables: all(document, ".scroll", (element) => ({ ...box(element), inner: element.scrollWidth, outer: element.clientWidth })),
    ids: [...document.querySelectorAll("[id]")].map((element) => element.id),
    links: [...document.querySelectorAll("a[href]")].map((link) => link.getAttribute("href")),
    contents: [...document.querySelectorAll("nav a")].map((link) => link.getAttribute("href")),
    sections: [...document.querySelectorAll("main > section")].map((section) => section.id),
    findings: [...document.querySelectorAll("article.finding")]
      .map((finding) => ({ name: finding.id, command: (finding.querySelector(":scope > p > code") || {}).textContent || "" })),
    charts: [...document.querySelectorAll("figure")].filter((figure) => figure.querySelector(".chart")).map(chart),
  });
  parent.document.body.append(out);
})();
