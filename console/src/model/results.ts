/**
 * What a tool gave back, as the parts it came in: words, pictures, other files. Pure and total.
 *
 * The host names files by reference; whoever may see them reads them under that name. A result that is not made of such
 * parts is none of our business here: it is shown as the text it is.
 */
import { asRecord, asText } from "./events";

export interface Words {
  kind: "text";
  text: string;
}
export interface StoredFile {
  kind: "image" | "file";
  /** Null: it was not kept, and `problem` says why. */
  id: string | null;
  name: string;
  mimeType: string;
  size: number | null;
  /** Why it cannot be shown or was not kept, in the host's words. */
  problem: string;
}
/** Something a tool said of which we only know that it has a type. */
export interface Other {
  kind: "other";
  value: unknown;
}
export type ResultPart = Words | StoredFile | Other;

/** The parts of a result, be it the text of one or the value; null when it is something else. */
export function partsOf(result: unknown): ResultPart[] | null {
  const value = typeof result === "string" ? read(result, "[") : result;
  if (!Array.isArray(value) || value.length === 0 || !value.every((one) => asText(asRecord(one).type))) return null;
  const parts = value.map(partOf);
  return parts.some((part) => part.kind === "image" || part.kind === "file") || parts.every((part) => part.kind === "text") ? parts : null;
}

/** The sentence of a call that failed; null when it came to something, or says it in another way. */
export function errorOf(result: string): string | null {
  return asText(asRecord(read(result, '{"error":')).error) || null;
}

function read(text: string, beginning: string): unknown {
  if (!text.startsWith(beginning)) return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

function partOf(value: unknown): ResultPart {
  const raw = asRecord(value);
  const told = asRecord(raw.resource).text; // a text that an MCP server gives under an address
  if (raw.type === "resource" && typeof told === "string") return { kind: "text", text: told };
  if (raw.type === "text" && typeof raw.text === "string") return { kind: "text", text: raw.text };
  const file = raw.type === "image" || raw.type === "file" ? fileOf(raw, raw.type) : null;
  return file ?? { kind: "other", value };
}

/** A file as a result, a card or an announcement refers to it; null when it names none and says nothing of it. */
export function fileOf(raw: Record<string, unknown>, kind?: "image" | "file"): StoredFile | null {
  const id = asText(raw.artifact_id) || null;
  const problem = asText(raw.problem);
  if (!id && !problem) return null;
  const mimeType = asText(raw.mime_type);
  const size = [raw.size, raw.size_bytes].find((one): one is number => typeof one === "number") ?? null;
  const shown = kind ?? (SHOWN.has(mimeType) ? "image" : "file");
  return { kind: id ? shown : "file", id, name: asText(raw.name), mimeType, size, problem };
}

/** Kinds that the host serves to be looked at in place. */
const SHOWN = new Set(["image/png", "image/jpeg", "image/webp", "image/gif"]);

export interface Sum {
  text: string;
  pictures: number;
  files: number;
}

export function summed(parts: readonly ResultPart[]): Sum {
  return {
    text: parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join(" "),
    pictures: parts.filter((part) => part.kind === "image").length,
    files: parts.filter((part) => part.kind === "file").length,
  };
}
