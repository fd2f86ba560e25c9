// Walks through steps against an AG-UI endpoint, as an application would, and prints what the client made of it: every
// event it accepted, how each run ended, then the messages it holds.
// Usage: node drive.mjs <url> <1|0> <threadId> <step>...
// A step is a text to say, or JSON: {say, tools?, answer?: {toolName: content}, resume?: "approve"|"deny", again: true,
// edit: true, leave: milliseconds}. `edit` says it in place of the first message. `answer` answers calls that are left open and runs once more, `resume` open interrupts likewise.
const [url, client, threadId, ...steps] = process.argv.slice(2);
const { HttpAgent } = await import(client === "1" ? "@ag-ui/client" : "ag-ui-client-0");

const agent = new HttpAgent({ url, threadId });
const print = (line) => process.stdout.write(JSON.stringify(line) + "\n");
let runs = 0;
let asked = 0;
let interrupts = [];

async function run(parameters = {}, leave = undefined) {
  interrupts = [];
  const onEvent = ({ event }) => {
    print({ event });
    if (event.type === "RUN_FINISHED") interrupts = event.outcome?.interrupts ?? [];
    if (leave !== undefined && event.type === leave) agent.abortRun();
  };
  try {
    await agent.runAgent({ runId: `run-${runs++}`, ...parameters }, { onEvent });
    print({ ended: "resolved" });
  } catch (error) {
    print({ ended: "rejected", error: String(error) });
  }
}

function openCalls() {
  const answered = new Set(agent.messages.filter((one) => one.role === "tool").map((one) => one.toolCallId));
  return agent.messages.flatMap((one) => one.toolCalls ?? []).filter((call) => !answered.has(call.id));
}

for (const step of steps) {
  const { say, tools, answer, resume, again, edit, leave } = step.startsWith("{") ? JSON.parse(step) : { say: step };
  if (edit) agent.setMessages([]);
  if (say !== undefined) agent.messages.push({ id: `user-${asked++}`, role: "user", content: say });
  if (again) agent.messages.splice(agent.messages.findLastIndex((one) => one.role === "user") + 1);
  await run({ tools }, leave);
  if (answer) {
    for (const call of openCalls()) {
      const content = answer[call.function.name];
      agent.messages.push({ id: `answer-${call.id}`, role: "tool", toolCallId: call.id, content });
    }
    await run({ tools });
  }
  if (resume) {
    const payload = { approved: resume === "approve" };
    const entries = interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload }));
    await run({ tools, resume: entries });
  }
}
print({ messages: agent.messages });
