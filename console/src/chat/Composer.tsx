/** Where a person writes: Enter sends, Shift+Enter breaks the line, `@` offers agents, images come by drop and paste. */
import { useEffect, useId, useMemo, useRef, useState, type ClipboardEvent, type DragEvent, type KeyboardEvent } from "react";
import type { AgentEntry } from "../api/shapes";
import { Icon } from "../ui/icons";
import { useKept } from "../ui/kept";
import { useWords } from "../words";
import type { Upload } from "./send";
import { TooLong, tooMany } from "./TooLong";
import { useUploads } from "./uploads";

interface Props {
  agent: string;
  agents: AgentEntry[];
  busy: boolean;
  stopping: boolean;
  /** Another number whenever something was said, also by other ways than this one. */
  said: number;
  disabled: boolean;
  onSend: (text: string, uploads: Upload[]) => void;
  onStop: () => void;
}

export function Composer({ agent, agents, busy, stopping, said, disabled, onSend, onStop }: Props) {
  const { t } = useWords();
  const [text, setText] = useKept("draft", "");
  const [chosen, setChosen] = useState(0);
  const [closed, setClosed] = useState(false);
  const [dragging, setDragging] = useState(false);
  const files = useUploads();
  const narrow = window.matchMedia("(max-width: 600px)").matches;
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const listId = useId();
  const offered = useMemo(() => (closed ? [] : mentionable(text, agents)), [text, agents, closed]);
  const [due, setDue] = useState(false); // sent by the person while a file was still on its way
  const possible = !tooMany(text) && !disabled && (text.trim() !== "" || files.previews.length > 0);
  const ready = possible && !files.busy;

  useEffect(() => grow(area.current), [text]);
  useEffect(() => area.current?.focus({ preventScroll: true }), []);
  const focus = () => window.matchMedia("(pointer: fine)").matches && area.current?.focus({ preventScroll: true }); // elsewhere a keyboard would come up
  useEffect(() => void (said && focus()), [said]);

  const send = () => {
    setDue(possible && files.busy);
    if (!ready) return;
    onSend(text.trim() || "…", files.uploads);
    setText("");
    files.clear();
  };
  useEffect(() => {
    if (due && files.problem) setDue(false); // what was to be sent is not what there is now: the person decides anew
    else if (due && ready) send();
  });
  const complete = (entry: AgentEntry) => {
    setText(`@${entry.agentId} `);
    setChosen(0);
    area.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return; // an input method is still at work
    const picked = offered[Math.min(chosen, offered.length - 1)];
    if (picked && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      setChosen((at) => (at + (event.key === "ArrowDown" ? 1 : offered.length - 1)) % offered.length);
    } else if (picked && (event.key === "Tab" || event.key === "Enter")) {
      event.preventDefault();
      complete(picked);
    } else if (picked && event.key === "Escape") setClosed(true);
    else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape" && busy) onStop();
  };
  const onPaste = (event: ClipboardEvent) => {
    const pasted = [...event.clipboardData.files];
    if (pasted.length) {
      event.preventDefault();
      files.add(pasted);
    }
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setDragging(false);
    files.add([...event.dataTransfer.files]);
  };

  return (
    <div
      className={`composer${dragging ? " dragging" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setDragging(true);
      }}
      onDragLeave={() => setDragging(false)}
      onDrop={onDrop}
    >
      {offered.length > 0 && (
        <ul className="mentions" role="listbox" id={listId} aria-label={t("ag.title")}>
          {offered.map((entry, index) => (
            <li key={entry.agentId} id={`${listId}-${index}`} role="option" aria-selected={index === chosen} onPointerDown={(event) => event.preventDefault()} onClick={() => complete(entry)}>
              <strong>@{entry.agentId}</strong> <span>{entry.label !== entry.agentId ? entry.label : ""}</span>
            </li>
          ))}
        </ul>
      )}
      {files.problem && (
        <p className="error-text" role="alert">
          {files.problem}
        </p>
      )}
      <TooLong text={text} />
      {(files.previews.length > 0 || files.busy) && (
        <ul className="previews">
          {files.previews.map((file) => (
            <li key={file.key}>
              <img src={file.preview} alt={file.name} />
              <button type="button" className="icon-button" aria-label={t("chat.detach", { name: file.name })} onClick={() => files.drop(file.key)}>
                <Icon name="close" size={14} />
              </button>
            </li>
          ))}
          {files.busy && <li className="hint">{t("chat.uploading")}</li>}
        </ul>
      )}
      <div className="composer-row">
        <input ref={picker} type="file" accept="image/png,image/jpeg,image/webp,image/gif" multiple hidden onChange={(event) => files.add([...(event.target.files ?? [])])} />
        <button type="button" className="icon-button" aria-label={t("chat.attach")} title={t("chat.attach")} onClick={() => picker.current?.click()} disabled={disabled}>
          <Icon name="clip" />
        </button>
        <textarea
          ref={area}
          rows={1}
          value={text}
          disabled={disabled}
          placeholder={dragging ? t("chat.drop") : t(!agent ? "chat.placeholder_early" : narrow ? "chat.placeholder_short" : "chat.placeholder", { agent })}
          aria-label={t("chat.write")}
          role={offered.length ? "combobox" : undefined}
          aria-expanded={offered.length ? true : undefined}
          aria-controls={offered.length ? listId : undefined}
          aria-activedescendant={offered.length ? `${listId}-${chosen}` : undefined}
          onChange={(event) => {
            setText(event.target.value);
            setDue(false);
            setClosed(false);
            setChosen(0);
          }}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        {busy && !text.trim() ? (
          <button type="button" className="round stop" onClick={() => (onStop(), focus())} disabled={stopping} aria-label={t(stopping ? "chat.stopping" : "chat.stop")} title={t("chat.stop")}>
            <Icon name="stop" />
          </button>
        ) : (
          <button type="button" className="round" onClick={send} disabled={!possible || due} aria-label={t("chat.send")} title={t("chat.send")}>
            <Icon name="send" />
          </button>
        )}
      </div>
    </div>
  );
}

function grow(area: HTMLTextAreaElement | null): void {
  if (!area) return;
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight, 220)}px`;
}

/** Agents that fit a text which is nothing but a mention being written. */
export function mentionable(text: string, agents: AgentEntry[]): AgentEntry[] {
  const written = /^@([^\s]*)$/.exec(text)?.[1];
  if (written === undefined) return [];
  const start = written.toLowerCase();
  return agents.filter((agent) => agent.agentId.toLowerCase().includes(start) || agent.label.toLowerCase().includes(start)).slice(0, 8);
}
