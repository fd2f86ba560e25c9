/**
 * What a browser offers only on https and on its own machine, done so that it works at every address. All use of such
 * interfaces is here, each with another way beside it.
 */
import { useEffect, useRef, useState, type ReactNode } from "react";
import { useWords } from "../words";
import { Dialog } from "./parts";

/** A random UUID, version 4. `crypto.randomUUID` is not there on plain http; `getRandomValues` is. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Copies the text, by the clipboard where there is one, else by a selection. Returns whether it was copied. */
export async function copyText(text: string): Promise<boolean> {
  const clipboard = navigator.clipboard as Clipboard | undefined;
  try {
    if (clipboard) return await clipboard.writeText(text).then(() => true);
  } catch {
    // not allowed here: a selection may be
  }
  return copySelected(text);
}

/** Selects the text in a field nobody sees and copies the selection. Inside an open dialog: nothing else can have the focus. */
function copySelected(text: string): boolean {
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.className = "visually-hidden";
  (before?.closest("dialog") ?? document.body).append(field);
  field.focus({ preventScroll: true });
  field.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    field.remove();
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  }
}

const SHOWN_MS = 1500;

/** Copies a text at a press. Where the browser lets no page copy, it shows the text selected, with what to do. */
export function useCopy(text: string): { copy: () => void; copied: boolean; byHand: ReactNode } {
  const [copied, setCopied] = useState(false);
  const [refused, setRefused] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => void copyText(text).then((done) => (done ? setCopied(true) : setRefused(true)));
  return { copy, copied, byHand: refused ? <CopyByHand text={text} onClose={() => setRefused(false)} /> : null };
}

function CopyByHand({ text, onClose }: { text: string; onClose: () => void }) {
  const { t } = useWords();
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  return (
    <Dialog title={t("app.copy")} onClose={onClose}>
      <label className="field">
        <span>{t("app.copy_by_hand")}</span>
        <textarea ref={field} readOnly rows={6} value={text} />
      </label>
      <div className="row end">
        <button type="button" className="button primary" onClick={onClose}>
          {t("app.close")}
        </button>
      </div>
    </Dialog>
  );
}
