/** The one way to the host: adds the key, turns refusals into sentences. Knows paths under /api and nothing of pages. */
import { framesOf, type Frame } from "./sse";

const KEY = "paddock.key";
const FRESH = "paddock.key.fresh";

/** A refusal or a failure, with the host's own sentence. `status` 0: the host could not be reached. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
  ) {
    super(detail);
  }
}

type Listener = () => void;
const strangers = new Set<Listener>();

/** Called when the host does not know who we are. */
export function onStranger(listener: Listener): () => void {
  strangers.add(listener);
  return () => strangers.delete(listener);
}

/** The key lives as long as the tab: it survives a reload, and is in no address, no cookie and no other tab. */
export function keyOfThisTab(): string | null {
  return sessionStorage.getItem(KEY);
}

export function rememberKey(key: string | null): void {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

const made = new Set<Listener>();

/** Called when this tab, which had no key, made the first one. */
export function onFreshKey(listener: Listener): () => void {
  made.add(listener);
  return () => made.delete(listener);
}

/** The tab goes on with the key it made, and shows it until somebody says that they have kept it, also after a reload. */
export function keepFreshKey(key: string): void {
  sessionStorage.setItem(FRESH, key);
  rememberKey(key);
  made.forEach((listener) => listener());
}

export function freshKey(): string | null {
  return sessionStorage.getItem(FRESH);
}

export function confirmFreshKey(): void {
  sessionStorage.removeItem(FRESH);
}

function headers(more: Record<string, string> = {}): Record<string, string> {
  const key = keyOfThisTab();
  return key ? { ...more, Authorization: `Bearer ${key}` } : more;
}

async function refusal(answer: Response, sentWith: string | null): Promise<Problem> {
  let code = "runtime_error";
  let detail = `${answer.status} ${answer.statusText}`;
  try {
    const body = (await answer.json()) as { code?: string; detail?: string };
    code = body.code ?? code;
    detail = body.detail ?? detail;
  } catch {
    // not a problem document: the status has to do
  }
  // What was asked with another key, or before there was one, says nothing of the key that is here now.
  if (answer.status === 401 && sentWith === keyOfThisTab()) strangers.forEach((listener) => listener());
  return new Problem(answer.status, code, detail);
}

async function send(path: string, init: RequestInit): Promise<Response> {
  const sentWith = keyOfThisTab();
  let answer: Response;
  try {
    answer = await fetch(path, { ...init, credentials: "omit", redirect: "error", cache: "no-store" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Problem(0, "unreachable", "");
  }
  if (!answer.ok) throw await refusal(answer, sentWith);
  return answer;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await send(path, { headers: headers({ Accept: "application/json" }), signal: signal ?? null });
  return (await answer.json()) as T;
}

async function withBody<T>(method: string, path: string, body: unknown, more: Record<string, string> = {}): Promise<T> {
  const answer = await send(path, {
    method,
    headers: headers({ ...more, "Content-Type": "application/json", Accept: "application/json" }),
    body: JSON.stringify(body),
  });
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

export const post = <T>(path: string, body: unknown): Promise<T> => withBody<T>("POST", path, body);
export const patch = <T>(path: string, body: unknown): Promise<T> => withBody<T>("PATCH", path, body);
export const put = <T>(path: string, body: unknown, more: Record<string, string> = {}): Promise<T> => withBody<T>("PUT", path, body, more);

export async function remove(path: string): Promise<void> {
  await send(path, { method: "DELETE", headers: headers() });
}

export async function upload<T>(path: string, form: FormData): Promise<T> {
  const answer = await send(path, { method: "POST", headers: headers(), body: form });
  return (await answer.json()) as T;
}

/** A file to take away. The key cannot travel with a link, so the bytes come by fetch and are handed over. */
export async function download(path: string, name: string): Promise<void> {
  const answer = await send(path, { headers: headers() });
  const address = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** One connection of a stream, from the cursor on. Ends when the body ends; throws when it is cut or refused. */
export async function* stream(path: string, after: string | null, signal: AbortSignal, opened: () => void = () => undefined): AsyncGenerator<Frame[]> {
  const more: Record<string, string> = { Accept: "text/event-stream" };
  if (after !== null) more["Last-Event-ID"] = after;
  const answer = await send(path, { headers: headers(more), signal });
  opened();
  if (answer.body) yield* framesOf(answer.body);
}

/** A request whose answer is a stream that nobody here reads: it is let go by, so that nothing takes it for a lost reader. */
export async function postStream(path: string, body: unknown): Promise<void> {
  const more = { "Content-Type": "application/json", Accept: "text/event-stream" };
  const answer = await send(path, { method: "POST", headers: headers(more), body: JSON.stringify(body) });
  void answer.body?.pipeTo(new WritableStream()).catch(() => undefined);
}
