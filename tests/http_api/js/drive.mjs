// Runs one turn per text against an AG-UI endpoint, as an application would, and prints what the client made of it:
// every event it accepted, then the messages it holds. Usage: node drive.mjs <url> <1|0> <threadId> <text>...
const [url, client, threadId, ...texts] = process.argv.slice(2);
const { HttpAgent } = await import(client === "1" ? "@ag-ui/client" : "ag-ui-client-0");

const agent = new HttpAgent({ url, threadId });
const print = (line) => process.stdout.write(JSON.stringify(line) + "\n");

for (const [index, text] of texts.entries()) {
  agent.messages.push({ id: `user-${index}`, role: "user", content: text });
  try {
    await agent.runAgent({ runId: `run-${index}` }, { onEvent: ({ event }) => print({ event }) });
    print({ ended: "resolved" });
  } catch (error) {
    print({ ended: "rejected", error: String(error) });
  }
}
print({ messages: agent.messages });
