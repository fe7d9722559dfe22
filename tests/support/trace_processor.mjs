// asks Perfetto's own trace processor, as WebAssembly, SQL questions about a trace.
// Usage: node query.mjs ASSETS TRACE <QUESTIONS >ANSWERS. QUESTIONS: a JSON list of SQL texts, each of one
// query behind any number of INCLUDEs. ANSWERS: a JSON list of lists of rows, or {"error": why}.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';

const [assets, trace] = process.argv.slice(2);

// The engine is built for a browser's worker.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function () {};
globalThis.location = { href: pathToFileURL(assets).href + '/' };
globalThis.wasmBytes = new Uint8Array(readFileSync(join(assets, 'trace_processor.wasm')));
let glue = readFileSync(join(assets, 'engine_bundle.node.js'), 'utf8');
for (const [from, to] of [
  ['this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;'],
  ['locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: globalThis.wasmBytes,'],
  ['const wasmBridge = new wasm_bridge_1.WasmBridge();',
   'const wasmBridge = globalThis.bridge = new wasm_bridge_1.WasmBridge();'],
]) {
  if (!glue.includes(from)) throw new Error(`the engine is not the expected one: no ${from}`);
  glue = glue.replace(from, to);
}
console.warn = () => {};
vm.runInThisContext(glue, { filename: 'engine_bundle.js' });
const { EngineBase } = await import(pathToFileURL(join(assets, 'engine.mjs')).href);

class Engine extends EngineBase {
  mode = 'WASM';
  id = 'test';
  constructor(port) {
    super();
    this.port = port;
    port.onmessage = (message) => {
      try { this.onRpcResponseBytes(message.data); } catch (error) { fail(error); }
    };
  }
  rpcSendRequestBytes(bytes) { this.port.postMessage(bytes); }
}

function fail(error) {
  console.error(String(error?.stack ?? error));
  process.exit(1);
}
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

const channel = new MessageChannel();
globalThis.bridge.initialize(channel.port1);
const engine = new Engine(channel.port2);
const bytes = new Uint8Array(readFileSync(trace));
const step = 32 << 20;
for (let at = 0; at < bytes.length || at === 0; at += step) {
  await engine.parse(bytes.subarray(at, at + step));
}
await engine.notifyEof();

const answers = [];
for (const sql of JSON.parse(readFileSync(0, 'utf8'))) {
  const result = await engine.tryQuery(sql);
  if (result.ok === false) { answers.push({ error: String(result.error) }); continue; }
  const table = result.value ?? result;
  const columns = table.columns();
  const row = table.iter(Object.fromEntries([]));
  const rows = [];
  for (; row.valid(); row.next()) {
    rows.push(Object.fromEntries(columns.map((name) => {
      const value = row.get(name);
      return [name, typeof value === 'bigint' ? Number(value) : value];
    })));
  }
  answers.push(rows);
}
process.stdout.write(JSON.stringify(answers) + '\n', () => process.exit(0));
