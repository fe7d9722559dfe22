// Appended by the test to a copy of the page: where everything was rendered, as JSON in the page.
(() => {
  const shown = (element) => getComputedStyle(element).display !== "none";
  const box = (element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return { left, right, top, bottom };
  };
  const point = (element, x, y) => {
    const at = new DOMPoint(x, y).matrixTransform(element.getScreenCTM());
    return [at.x, at.y];
  };
  const all = (root, selector, make) => [...root.querySelectorAll(selector)].filter(shown).map(make);
  const number = (element, name) => Number(element.dataset[name]);
  const bar = (rect) => ({
    ...box(rect), at: number(rect, "at"), ns: number(rect, "ns"), fill: rect.classList[1],
    color: getComputedStyle(rect).fill, title: rect.querySelector("title").textContent,
  });
  const text = (element) => ({ ...box(element), text: element.textContent, class: element.getAttribute("class") });
  const inside = (element) => {
    let rect = element;
    while (rect && rect.tagName !== "rect") rect = rect.previousElementSibling;
    return { ...text(element), bar: box(rect) };
  };
  const picture = (svg) => ({
    ...box(svg),
    role: svg.getAttribute("role"),
    label: svg.getAttribute("aria-label"),
    lanes: all(svg, "g[data-lane]", (lane) => ({
      key: lane.dataset.lane, bars: all(lane, "rect.bar", bar),
      beside: all(lane, "text.beside", text), inside: all(lane, "text.inside", inside),
    })),
    grounds: all(svg, "rect.lane", box),
    ticks: all(svg, "text.tick", (tick) => ({
      ...text(tick), at: number(tick, "at"), x: point(tick, tick.x.baseVal[0].value, 0)[0],
    })),
    labels: all(svg, "text.deadline", text),
    arrows: all(svg, "line.arrow", (line) => ({
      from: line.dataset.from, to: line.dataset.to, from_at: number(line, "fromAt"), to_at: number(line, "toAt"),
      start: point(line, line.x1.baseVal.value, line.y1.baseVal.value),
      end: point(line, line.x2.baseVal.value, line.y2.baseVal.value),
      reply: line.classList.contains("reply"), color: getComputedStyle(line).stroke,
    })),
    legend: all(svg.parentElement, ".legend li", (item) => ({
      text: item.textContent.trim(), fills: [...item.querySelectorAll("rect")].map((rect) => rect.classList[0]), ...box(item),
    })),
    caption: [...svg.parentElement.querySelectorAll("figcaption p")].map((p) => p.textContent).join(" "),
  });
  const probe = {
    width: innerWidth,
    scroll_width: document.scrollingElement.scrollWidth,
    page: getComputedStyle(document.body).backgroundColor,
    text: getComputedStyle(document.body).color,
    blocks: all(document, "h1, h2, h3, p, dt, dd, td, th, li, caption, table", text).map(({ left, right, text }) => ({ left, right, text: text.slice(0, 80) })),
    pictures: all(document, "svg.picture", picture),
  };
  const out = parent.document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify(probe);
  parent.document.body.append(out);
})();
