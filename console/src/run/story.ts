/** A run's story as the host tells it, and how two of them differ. Pure. */
import type { RunEntry, StoryEntry } from "../api/shapes";
import { asRecord, asText } from "../model/events";
import { fileOf, partsOf, type StoredFile } from "../model/results";

export type { StoryEntry };
export type EntryKind = "event" | "process" | "state" | "decision" | "tool" | "model" | "artifact";
export interface Grant {
  actions?: string[];
  refused?: Record<string, string>;
  models?: Record<string, string[]>;
  tools?: Record<string, string[]>;
  knowledge_bases?: Record<string, string[]>;
  state_scopes?: string[];
  storage_areas?: string[];
  files?: string[];
  platform_actions?: string[];
  history_scope?: string;
}
export interface Story {
  run: RunEntry;
  grant: Grant;
  entries: StoryEntry[];
  truncated: boolean;
}

export const KINDS: EntryKind[] = ["event", "process", "state", "decision", "tool", "model", "artifact"];

/** Entries with a name each that stays theirs while the story grows, wherever it grows. */
export function named(entries: readonly StoryEntry[]): [string, StoryEntry][] {
  const seen = new Map<string, number>();
  return entries.map((entry) => {
    const name = `${entry.time} ${entry.kind} ${entry.name}`;
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return [`${name} ${count}`, entry];
  });
}

/** What the run was asked, from the entry that holds its input. */
export function inputOf(story: Story): Record<string, unknown> | null {
  const asked = story.entries.find((entry) => entry.name.startsWith("USER_INPUT") && entry.detail.target === "SYSTEM");
  return asked ? asRecord(asked.detail.payload) : null;
}

/** The files that are the person's to see: what tools gave back, and what was mentioned in the conversation. */
export function filesTold(entries: readonly StoryEntry[]): ReadonlySet<string> {
  const ids = entries.flatMap(({ kind, detail }) => {
    const whole = asText(detail.artifactId);
    if (kind === "artifact") return detail.published === true ? [whole] : [];
    if (kind !== "tool") return [];
    return [whole, ...(partsOf(detail.result) ?? []).map((part) => ("id" in part ? (part.id ?? "") : ""))];
  });
  return new Set(ids.filter(Boolean));
}

/** The file that an entry tells of. */
export function fileIn({ name, detail }: StoryEntry): StoredFile | null {
  return fileOf({ artifact_id: detail.artifactId, mime_type: detail.mimeType, size: detail.size, name });
}

/** Names a grant gives, one list for each kind of thing. */
export function namesIn(grant: Grant): Record<string, string[]> {
  return {
    actions: grant.actions ?? [],
    models: Object.keys(grant.models ?? {}),
    tools: Object.keys(grant.tools ?? {}),
    knowledge: Object.keys(grant.knowledge_bases ?? {}),
    state: grant.state_scopes ?? [],
    storage: grant.storage_areas ?? [],
    platform: grant.platform_actions ?? [],
  };
}

export interface Difference {
  what: string;
  one: string;
  other: string;
}

export function differences(one: Story, other: Story, took: (run: RunEntry) => string): Difference[] {
  const rows: Difference[] = [
    { what: "agent", one: one.run.agentId ?? "", other: other.run.agentId ?? "" },
    { what: "status", one: one.run.status, other: other.run.status },
    { what: "took", one: took(one.run), other: took(other.run) },
    { what: "tokens", one: String(one.run.usage?.totalTokens ?? 0), other: String(other.run.usage?.totalTokens ?? 0) },
    { what: "model_calls", one: String(one.run.usage?.modelCalls ?? 0), other: String(other.run.usage?.modelCalls ?? 0) },
  ];
  const [mine, theirs] = [namesIn(one.grant), namesIn(other.grant)];
  for (const kind of Object.keys(mine)) rows.push({ what: kind, one: (mine[kind] ?? []).join(", "), other: (theirs[kind] ?? []).join(", ") });
  return rows;
}

export function tookOf(run: RunEntry, now: number): number {
  const start = Date.parse(run.startedAt ?? run.createdAt);
  return (run.endedAt ? Date.parse(run.endedAt) : now) - start;
}
