/** What somebody has written into the form of an agent and not saved. Pure; where it is kept is the form's business. */
import { asRecord, asText } from "../model/events";

export type Definition = Record<string, unknown>;

export interface Draft {
  name: string;
  definition: Definition;
  /** Settings by runner: whoever looks at another runner and comes back finds them as they were. */
  configs: Record<string, Definition>;
  /** What was written as JSON and cannot be read as such, by the name of its field. */
  unread: Record<string, string>;
}

export function draftOf(name: string, definition: Definition): Draft {
  return { name, definition, configs: {}, unread: {} };
}

export function changed(draft: Draft, change: Definition): Draft {
  return { ...draft, definition: { ...draft.definition, ...change } };
}

/** Another runner, with what was written for it before. */
export function withRunner(draft: Draft, runner: string): Draft {
  const before = asText(draft.definition["runner"]);
  const configs = { ...draft.configs, [before]: asRecord(draft.definition["config"]) };
  return { ...changed(draft, { runner, config: configs[runner] ?? {} }), configs, unread: {} };
}

/** A text that cannot be read, or null once it can be. */
export function withUnread(draft: Draft, field: string, text: string | null): Draft {
  const { [field]: _, ...others } = draft.unread;
  return { ...draft, unread: text === null ? others : { ...others, [field]: text } };
}

/** What is sent: fields without a value are left out, and the host fills in its own. */
export function toSend(draft: Draft): Definition {
  return Object.fromEntries(Object.entries(draft.definition).filter(([, value]) => value !== undefined && value !== null));
}

export type Mode = "default" | "all" | "these" | "none" | "fine";

/** The names of a policy that is a plain list, as people write it or as the host tells it (names with null for every operation); else null. */
export function namedIn(value: unknown): string[] | null {
  if (Array.isArray(value)) return value.map(asText);
  if (typeof value !== "object" || value === null) return null;
  const operations = Object.values(value);
  return operations.every((one) => one === null) ? Object.keys(value) : null;
}

/** Which plain choice a policy is; "fine": set in a way that only a file can say. */
export function modeOf(value: unknown, standard: string): Mode {
  const names = namedIn(value);
  if (names) return names.length ? "these" : "none";
  if (value === undefined || value === null || value === standard) return "default";
  return value === "all" ? "all" : "fine";
}
