// A Paddock runner in plain Node, no dependencies. The protocol is docs/spec/runner-protocol.md; this file is all of it
// that a small runner needs: one JSON object per line on stdin and stdout, requests in both directions.
import { createInterface } from "node:readline";

const write = (frame) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...frame }) + "\n");
console.log = console.error; // stdout belongs to the wire

let plugin, limits, clockOffset; // from the handshake
const runs = new Map(); // run id -> Run
const calls = new Map(); // id of a host call -> { resolve, reject }
let nextCallId = 1;

class Cancelled extends Error {}

class Run {
  constructor(context) {
    this.context = context;
    this.credit = limits.run_credit;
    this.sequence = 0;
    this.cancelled = false;
    this.wakeUp = () => {}; // called when credit or a cancel arrives
    this.deadline = ((context.runtime.deadline_at ?? Infinity) + clockOffset) * 1000;
  }

  /** Say one result; waits while there is no credit. The end of a run needs none. */
  async say(type, data) {
    const last = type === "run.completed" || type === "run.failed";
    while (!last && this.credit <= 0 && !this.cancelled) await new Promise((resolve) => (this.wakeUp = resolve));
    if (this.cancelled) throw new Cancelled();
    this.credit -= 1;
    this.sequence += 1;
    const timestamp = Math.floor(Date.now() / 1000);
    const params = { run_id: this.context.run_id, type, data, sequence: this.sequence, timestamp };
    write({ method: "run_result", params });
  }

  /** Ask the host something. Rejects with the AgentAPIError when refused, by the deadline, or on cancel. */
  call(method, params) {
    if (this.cancelled) return Promise.reject(new Cancelled());
    const id = nextCallId++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject({ code: "deadline_exceeded", message: method }), this.timeLeft());
      this.wakeUp = () => this.cancelled && reject(new Cancelled());
      calls.set(id, { resolve, reject, timer });
      write({ id, method, params: { run_id: this.context.run_id, ...params } });
    }).finally(() => {
      clearTimeout(calls.get(id)?.timer);
      calls.delete(id);
    });
  }

  timeLeft() {
    return Math.min(Math.max(0, this.deadline - Date.now()), 2 ** 31 - 1);
  }

  cancel() {
    this.cancelled = true;
    this.wakeUp();
  }
}

/** The agent itself: echo word by word, count the turns of this conversation, quote what was said before. */
async function agent(run) {
  const text = run.context.input.text ?? "";
  const { value, found } = await run.call("state.get", { scope: "conversation", key: "turns" });
  const turn = (found ? value : 0) + 1;
  await run.call("state.set", { scope: "conversation", key: "turns", value: turn });

  const page = await run.call("history.page", { limit: 10, direction: "backward" });
  const before = page.items.find((item) => item.role === "user" && item.event_id !== run.context.event.event_id);

  for (const word of text.match(/\S+\s*|\s+/g) ?? []) {
    await run.say("message.delta", { chunk: { role: "assistant", content: word } });
  }
  const note = before ? `turn ${turn}, before that: ${before.content}` : `turn ${turn}`;
  await run.say("message.delta", { chunk: { role: "assistant", content: ` (${note})` } });
  await run.say("message.completed", { message: { role: "assistant", content: `${text} (${note})` } });
}

async function drive(run) {
  try {
    await agent(run);
    await run.say("run.completed", {});
  } catch (error) {
    if (error instanceof Cancelled) return;
    const failure = { code: "runner.error", message: error.message ?? String(error), retryable: false };
    await run.say("run.failed", failure).catch(() => {});
  }
}

const manifest = () => ({
  id: `plugin:${plugin.author}/${plugin.name}/default`,
  name: "default",
  label: { en_US: "Node counter" },
  protocol_version: "1",
  capabilities: { streaming: true, interrupt: true, stateful_session: true },
  permissions: { history: ["page"], storage: ["plugin"] },
  context: {},
});

const requests = {
  initialize(params) {
    ({ plugin, limits } = params);
    limits = { run_credit: 256, ...limits };
    clockOffset = Date.now() / 1000 - params.host_time;
    return { protocol_version: "1", sdk: { name: "node-example", version: "0.1.0" } };
  },
  list_agent_runners: () => ({ runners: [manifest()] }),
  run_agent({ runner_id, context }) {
    if (runner_id !== manifest().id) throw { code: "not_found", message: `no runner ${runner_id}` };
    const run = new Run(context);
    runs.set(context.run_id, run);
    // one turn later, after the reply below: the reply is the acknowledgement, and it comes first
    run.done = new Promise(setImmediate).then(() => drive(run)).finally(() => runs.delete(context.run_id));
    return { run_id: context.run_id, accepted: true };
  },
  async cancel_run({ run_id }) {
    const run = runs.get(run_id);
    run?.cancel();
    await run?.done; // answer only when it has really ended
    return { run_id, ended: true };
  },
  ping: () => ({}),
  async shutdown() {
    await Promise.all([...runs.keys()].map((run_id) => requests.cancel_run({ run_id })));
    return {};
  },
};

const notifications = {
  run_credit({ run_id, credit }) {
    const run = runs.get(run_id);
    if (!run) return;
    run.credit += credit;
    run.wakeUp();
  },
};

async function answer({ id, method, params = {} }) {
  if (!Object.hasOwn(requests, method)) {
    const data = { code: "invalid_argument", message: `no method ${method}` };
    return write({ id, error: { code: -32601, message: data.message, data } });
  }
  try {
    write({ id, result: await requests[method](params) });
  } catch (error) {
    const data = { code: error.code ?? "runtime_error", message: error.message ?? String(error) };
    write({ id, error: { code: -32000, message: data.message, data } });
  }
  if (method === "shutdown") process.stdout.end(() => process.exit(0));
}

function hear(frame) {
  if (frame.method === undefined) {
    const call = calls.get(frame.id);
    if (frame.error) call?.reject(frame.error.data ?? frame.error);
    else call?.resolve(frame.result);
  } else if (frame.id !== undefined) {
    answer(frame);
  } else if (Object.hasOwn(notifications, frame.method)) {
    notifications[frame.method](frame.params);
  }
}

const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
lines.on("line", (line) => {
  if (line === "") return;
  let frame = null;
  try {
    frame = JSON.parse(line);
  } catch {}
  if (frame !== null && typeof frame === "object") return hear(frame);
  const data = { code: "invalid_argument", message: "the line is not a JSON object" };
  write({ id: null, error: { code: -32700, message: data.message, data } });
});
lines.on("close", () => requests.shutdown().then(() => process.exit(0))); // the host is gone
