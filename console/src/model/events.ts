/** The AG-UI events a console reads, as loosely as they may come. Reading is kind: what is not known is passed over. */

export interface AgUiEvent {
  type: string;
  [field: string]: unknown;
}

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export function asText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

export function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The event of a frame, or null when its data is not one. */
export function readEvent(data: string): AgUiEvent | null {
  try {
    const value: unknown = JSON.parse(data);
    return typeof asRecord(value).type === "string" ? (value as AgUiEvent) : null;
  } catch {
    return null;
  }
}
