/** Where we are, after the `#`: no address of the console ever reaches the host's log. */
import { useSyncExternalStore } from "react";

export type Place =
  | { page: "chat"; thread: string | null; agent: string | null; sought?: Sought | null }
  | { page: "run"; run: string; other: string | null }
  | { page: "agents"; agent: string | null }
  | { page: "operate"; section: string };

/** A message to be shown, and the words it was found by. */
export interface Sought {
  item: string;
  words: string[];
}

const MOST_WORDS = 20;
const PLAIN = /^[A-Za-z0-9._:@-]{1,200}$/;

export function placeOf(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [page, ...rest] = path.split("/").map(decoded);
  const asked = new URLSearchParams(query);
  const name = rest[0] && PLAIN.test(rest[0]) ? rest[0] : null;
  switch (page) {
    case "t":
      return { page: "chat", thread: name, agent: null, sought: soughtIn(asked) };
    case "run":
      return name ? { page: "run", run: name, other: plain(asked.get("with")) } : { page: "chat", thread: null, agent: null };
    case "agents":
      return { page: "agents", agent: rest.length ? rest.join("/") : null };
    case "operate":
      return { page: "operate", section: name ?? "live" };
    default:
      return { page: "chat", thread: null, agent: plain(asked.get("agent")) };
  }
}

function soughtIn(asked: URLSearchParams): Sought | null {
  const item = plain(asked.get("at"));
  return item ? { item, words: asked.getAll("word").slice(0, MOST_WORDS) } : null;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

function plain(value: string | null): string | null {
  return value && PLAIN.test(value) ? value : null;
}

export const toThread = (id: string): string => `#/t/${id}`;
export const toMessage = (id: string, { item, words }: Sought): string => `${toThread(id)}?${new URLSearchParams([["at", item], ...words.slice(0, MOST_WORDS).map((word): [string, string] => ["word", word])])}`;
export const toNewWith = (agent: string): string => `#/?agent=${encodeURIComponent(agent)}`;
export const toRun = (id: string, other?: string): string => `#/run/${id}${other ? `?with=${other}` : ""}`;
export const toAgent = (id: string): string => `#/agents/${encodeURIComponent(id)}`;
export const toSection = (section: string): string => `#/operate/${section}`;

export function go(hash: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", hash);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = hash;
}

function subscribe(listener: () => void): () => void {
  window.addEventListener("hashchange", listener);
  return () => window.removeEventListener("hashchange", listener);
}

export function usePlace(): Place {
  const hash = useSyncExternalStore(subscribe, () => location.hash);
  return placeOf(hash);
}
