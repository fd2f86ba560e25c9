/** What a person does in a conversation, as calls of the host. Each can be repeated: names are chosen here, once. */
import { post, put } from "../api/client";
import type { Accepted } from "../api/shapes";
import { newId } from "../ui/anywhere";
import { sessionPath } from "./follow";

export interface Upload {
  id: string;
  name: string;
  mimeType: string;
  url: string;
}
/** A message on its way. It stays the same message however often it is sent. */
export interface Outgoing {
  threadId: string;
  runId: string;
  messageId: string;
  text: string;
  agent: string | null;
  uploads: Upload[];
}

export function newOutgoing(threadId: string, text: string, agent: string | null, uploads: Upload[] = []): Outgoing {
  const id = newId();
  return { threadId, runId: `web-${id}`, messageId: `msg-${id}`, text, agent, uploads };
}

export function sendMessage(out: Outgoing): Promise<Accepted> {
  const agent = out.agent ? `?agent=${encodeURIComponent(out.agent)}` : "";
  return post<Accepted>(`/api/v1/agent/runs${agent}`, {
    threadId: out.threadId,
    runId: out.runId,
    state: {},
    messages: [{ id: out.messageId, role: "user", content: contentOf(out) }],
    tools: [],
    context: [],
    forwardedProps: { runtime_mode: "chat", client_time: clientTime() },
  });
}

function contentOf(out: Outgoing): unknown {
  if (!out.uploads.length) return out.text;
  const images = out.uploads.map((file) => ({ type: "binary", mimeType: file.mimeType, id: file.id, url: file.url, filename: file.name }));
  return [{ type: "text", text: out.text }, ...images];
}

export function clientTime(): Record<string, string | number> {
  const now = new Date();
  return { device_timezone: Intl.DateTimeFormat().resolvedOptions().timeZone, client_now_iso: now.toISOString(), client_epoch_ms: now.getTime() };
}

export const cancelRun = (run: string): Promise<unknown> => post(`/api/v1/agent/runs/${run}/cancel`, {});

export function control(thread: string, subtype: string, payload: Record<string, unknown> = {}, txId?: string): Promise<unknown> {
  return post(`${sessionPath(thread)}/control`, { subtype, payload, ...(txId ? { txId } : {}) });
}

/** Said differently, to whoever answered it: another may be the active one by now. A mention in the new words comes first. */
export const editMessage = (thread: string, itemId: string, content: string, agent: string | null): Promise<Accepted> => post(`${sessionPath(thread)}/edit`, { itemId, content, ...(agent ? { agentId: agent } : {}) });

export const regenerate = (thread: string, itemId: string, agent: string | null): Promise<Accepted> => post(`${sessionPath(thread)}/regenerate`, { itemId, ...(agent ? { agentId: agent } : {}) });

export const rate = (thread: string, itemId: string, rating: "up" | "down" | null): Promise<unknown> => put(`${sessionPath(thread)}/messages/${encodeURIComponent(itemId)}/feedback`, { rating });

/** A button or a form of a card, used. What it stands for is on record at the host; the page knows only its name. */
export const useAction = (ref: string, values: Record<string, unknown>): Promise<Accepted> => post(`/api/v1/agent/ui-actions/${encodeURIComponent(ref)}`, { values });
