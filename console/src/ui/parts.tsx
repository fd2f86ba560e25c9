/** Small parts every page uses: badges, notices, empty places, menus, dialogs. They know words and nothing of the host. */
import { useEffect, useId, useLayoutEffect, useRef, useState, type ReactNode } from "react";
import type { Problem } from "../api/client";
import { useWords } from "../words";
import { en, type WordKey } from "../words/en";
import { sentence } from "./data";
import { Icon, type IconName } from "./icons";

const TONES: Record<string, string> = {
  completed: "good",
  ok: "good",
  ready: "good",
  attached: "good",
  granted: "good",
  allowed: "good",
  failed: "bad",
  problem: "bad",
  unhealthy: "bad",
  denied: "bad",
  unauthorized: "bad",
  running: "busy",
  starting: "busy",
  delivered: "good",
  dead: "bad",
  queued: "wait",
  pending: "wait",
};

export function Status({ of }: { of: string }) {
  const { t } = useWords();
  const key = `status.${of}`;
  return <span className={`badge ${TONES[of] ?? "plain"}`}>{key in en ? t(key as WordKey) : of}</span>;
}

export function Notice({ tone, title, children }: { tone: "info" | "bad" | "wait"; title: string; children?: ReactNode }) {
  return (
    <div className={`notice ${tone}`} role={tone === "bad" ? "alert" : "status"}>
      <Icon name={tone === "info" ? "check" : "warn"} />
      <div>
        <strong>{title}</strong>
        {children}
      </div>
    </div>
  );
}

export function ProblemNotice({ problem, again }: { problem: Problem; again?: () => void }) {
  const { t } = useWords();
  return (
    <Notice tone="bad" title={t("app.went_wrong")}>
      <p>{sentence(problem, t)}</p>
      {again && (
        <button type="button" className="button" onClick={again}>
          {t("app.retry")}
        </button>
      )}
    </Notice>
  );
}

const BY_HOST: Record<string, WordKey> = { host_restarted: "chat.interrupted", host_shutdown: "chat.host_shutdown", host_lost: "chat.host_lost" };

/** What happened, where it was not the agent that failed. */
export function endedByHost(code: string | undefined): WordKey | null {
  return BY_HOST[code ?? ""] ?? null;
}

/** Why a run failed: what it means and what to do where that is known, and the sentence it came with, unless that says the same once more. */
export function Failure({ code, message }: { code: string; message: string }) {
  const { t } = useWords();
  const key = `failure.${code}`;
  return (
    <>
      {key in en && <p>{t(key as WordKey)}</p>}
      {message && !(key in en && code.startsWith("host_")) && <p className={key in en ? "said" : ""}>{message}</p>}
      <code>{code}</code>
    </>
  );
}

export function Empty({ icon, children }: { icon: IconName; children: ReactNode }) {
  return (
    <div className="empty">
      <Icon name={icon} size={28} />
      <p>{children}</p>
    </div>
  );
}

export interface MenuItem {
  label: string;
  act: () => void;
  dangerous?: boolean;
}

/** A button that opens a list of actions; arrows move, Escape closes. */
export function Menu({ label, icon = "dots", items }: { label: string; icon?: IconName; items: MenuItem[] }) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open) return;
    root.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const outside = (event: Event) => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);
  const onKey = (event: React.KeyboardEvent) => {
    if (!open) return;
    const entries = [...(root.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const at = entries.indexOf(document.activeElement as HTMLElement);
    if (event.key === "Escape") {
      event.stopPropagation();
      setOpen(false);
      root.current?.querySelector("button")?.focus();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      entries[(at + (event.key === "ArrowDown" ? 1 : entries.length - 1)) % entries.length]?.focus();
    }
  };
  return (
    <div className="menu" ref={root} onKeyDown={onKey}>
      <button type="button" className="icon-button" aria-haspopup="menu" aria-expanded={open} aria-controls={open ? id : undefined} aria-label={label} title={label} onClick={() => setOpen(!open)}>
        <Icon name={icon} />
      </button>
      {open && (
        <div className="menu-list" role="menu" id={id} aria-label={label}>
          {items.map((item) => (
            <button
              key={item.label}
              type="button"
              role="menuitem"
              className={item.dangerous ? "dangerous" : ""}
              onClick={() => {
                setOpen(false);
                item.act();
              }}
            >
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

/** A modal question. The browser's own dialog keeps the focus inside and hears Escape. One that only shows something also goes with a press beside it. */
export function Dialog({ title, className, shows = false, onClose, children }: { title: string; className?: string; shows?: boolean; onClose: () => void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Closed while it is still in the page: only then the focus goes back to where it was.
  useLayoutEffect(() => {
    const shown = dialog.current;
    if (shown && !shown.open) shown.showModal();
    return () => shown?.close();
  }, []);
  return (
    <dialog ref={dialog} className={className} aria-labelledby={id} onCancel={onClose} onClose={onClose} onClick={(event) => shows && event.target === dialog.current && onClose()}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

export function Confirm({ text, word, onYes, onNo }: { text: string; word: string; onYes: () => void; onNo: () => void }) {
  const { t } = useWords();
  return (
    <Dialog title={word} onClose={onNo}>
      <p>{text}</p>
      <div className="row end">
        <button type="button" className="button" onClick={onNo}>
          {t("app.cancel")}
        </button>
        <button type="button" className="button danger" onClick={onYes}>
          {word}
        </button>
      </div>
    </Dialog>
  );
}

export function JsonView({ value }: { value: unknown }) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return (
    <pre className="json" tabIndex={0}>
      {text ?? ""}
    </pre>
  );
}
