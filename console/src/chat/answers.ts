/**
 * Answers to what a run left open, by the AG-UI door: `resume` for its questions, tool messages for calls that the page
 * answers. The run that follows is read where every run is, in the conversation's stream.
 */
import { postStream } from "../api/client";
import { newId } from "../ui/anywhere";
import { clientTime } from "./send";

export interface Resume {
  interruptId: string;
  status: "resolved" | "cancelled";
  payload?: unknown;
}
export interface ToolAnswer {
  toolCallId: string;
  content: string;
}

export async function answerOpen(threadId: string, agentId: string | null, resume: Resume[], tools: ToolAnswer[]): Promise<void> {
  const id = newId();
  const body = {
    threadId,
    runId: `web-${id}`,
    protocolVersion: "1.0",
    messages: tools.map((tool, index) => ({ id: `msg-${id}-${index}`, role: "tool", toolCallId: tool.toolCallId, content: tool.content })),
    forwardedProps: { runtime_mode: "chat", client_time: clientTime() },
    ...(resume.length ? { resume } : {}),
  };
  await postStream(`/api/v1/agent/ag-ui${agentId ? `/${encodeURIComponent(agentId)}` : ""}`, body);
}
