/** One turn: what was asked, what came of it, and what can be done about it. */
import { memo, useEffect, useMemo, useRef } from "react";
import { errorOf, fileOf, partsOf, summed, type ResultPart } from "../model/results";
import { asRecord } from "../model/events";
import { hasEnded, isUnfinished, keyOf, type Part, type Run, type ToolPart } from "../model/run";
import { Icon } from "../ui/icons";
import { Folded, useKept, Within } from "../ui/kept";
import { CodeBlock, CopyButton, Markdown } from "../ui/Markdown";
import { endedByHost, Failure } from "../ui/parts";
import { toRun } from "../ui/router";
import { FileView, ResultParts } from "../ui/StoredFile";
import { useWords } from "../words";
import { Card, isOnlyButtons } from "./Card";
import { pretty } from "./Questions";
import { StoreImage } from "./StoreImage";
import { TooLong, tooMany } from "./TooLong";

export interface TurnActions {
  regenerate: (turn: Run) => void;
  /** It waits in line and is not to be asked any more. */
  withdraw: (turn: Run) => void;
  edit: (turn: Run, text: string) => void;
  rate: (itemId: string, rating: "up" | "down" | null) => void;
  /** A button or a form of a card was used. */
  press: (ref: string, values: Record<string, unknown>) => Promise<unknown>;
  /** This turn, known only as history tells it, came in sight or left it. */
  sight: (turnId: string, here: boolean) => void;
}
interface Props {
  turn: Run;
  /** Who answers this, or will. */
  agentId: string | null;
  agentName: string;
  newest: boolean;
  busy: boolean;
  feedback: Record<string, "up" | "down">;
  actions: TurnActions;
  /** Which turn of how many. */
  place: number;
  of: number;
  /** The moment of its day, where a day begins with it. */
  newDay: number | null;
  /** Somebody looked for a message of it. */
  sought: boolean;
}

export const TurnView = memo(function TurnView({ turn, agentId, agentName, newest, busy, feedback, actions, place: at, of, newDay, sought }: Props) {
  const { day } = useWords();
  const answers = turn.parts.filter((part): part is Part & { kind: "text" } => part.kind === "text" && part.text !== "");
  const last = answers.at(-1);
  const place = useRef<HTMLElement>(null);
  const { sight } = actions;
  useEffect(() => {
    if (turn.whole || !place.current) return;
    const watcher = new IntersectionObserver((entries) => sight(turn.turnId, entries.at(-1)?.isIntersecting === true));
    watcher.observe(place.current);
    return () => {
      watcher.disconnect();
      sight(turn.turnId, false);
    };
  }, [turn.whole, turn.turnId, sight]);
  const asked = turn.interrupts.length > 0;
  return (
    <Within name={turn.turnId}>
      <article className={sought ? "turn sought" : "turn"} aria-current={sought || undefined} data-turn={turn.turnId} ref={place} aria-posinset={at} aria-setsize={of}>
        {newDay !== null && <h2 className="day">{day(newDay)}</h2>}
        {turn.text !== null && <Asked turn={turn} newest={newest} busy={busy} actions={actions} />}
        <div className="answer">
          <div className="speaker">
            <span className={`avatar hue-${hueOf(agentId ?? agentName)}`} aria-hidden="true">
              {(agentName || "?").slice(0, 1).toUpperCase()}
            </span>
            <strong>{agentName}</strong>
          </div>
          {turn.parts.map((part) => (
            <PartView key={keyOf(part)} part={part} by={agentName} ended={hasEnded(turn)} waits={newest && turn.pendingToolCallIds.includes(part.id)} asked={asked} about={turn.interrupts.some((one) => one.toolCallId === part.id)} press={actions.press} />
          ))}
          <Ending turn={turn} agentName={agentName} withdraw={actions.withdraw} />
          {hasEnded(turn) && (
            <Footer turn={turn} itemId={last?.id ?? null} text={answers.map((part) => part.text).join("\n\n")} newest={newest} busy={busy} rating={last ? feedback[last.id] : undefined} actions={actions} />
          )}
        </div>
      </article>
    </Within>
  );
});

/** One of eight colours for each agent, always the same. */
function hueOf(name: string): number {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9973;
  return sum % 8;
}

function Asked({ turn, newest, busy, actions }: { turn: Run; newest: boolean; busy: boolean; actions: TurnActions }) {
  const { t } = useWords();
  const [editing, setEditing] = useKept<string | null>("edit", null);
  const opening = useRef(false); // only then it takes the focus, not when it comes back into the window
  const edit = () => {
    opening.current = true;
    setEditing(turn.text ?? "");
  };
  if (editing !== null)
    return (
      <form
        className="asked editing"
        onSubmit={(event) => {
          event.preventDefault();
          if (tooMany(editing)) return;
          if (editing.trim()) actions.edit(turn, editing.trim());
          setEditing(null);
        }}
      >
        <textarea value={editing} aria-label={t("chat.edit_text")} autoFocus={opening.current} rows={3} onChange={(event) => setEditing(event.target.value)} onKeyDown={(event) => event.key === "Escape" && setEditing(null)} />
        <TooLong text={editing} />
        {!newest && <p className="hint">{t("chat.edit_leaves")}</p>}
        <div className="row end">
          <button type="button" className="button" onClick={() => setEditing(null)}>
            {t("app.cancel")}
          </button>
          <button type="submit" className="button primary" disabled={tooMany(editing) > 0}>
            {t("chat.edit_send")}
          </button>
        </div>
      </form>
    );
  return (
    <div className="asked">
      <span className="visually-hidden">{t("chat.you")}: </span>
      <div className="bubble">
        {turn.erased ? <p className="cut">{t("chat.erased")}</p> : turn.text && <p>{turn.text}</p>}
        {turn.attachments.length > 0 && (
          <div className="images">
            {turn.attachments.map((file) => (
              <StoreImage key={file.id || file.url} url={file.url} id={file.id} alt={file.name ?? ""} />
            ))}
          </div>
        )}
      </div>
      {hasEnded(turn) && !busy && (
        <button type="button" className="icon-button quiet" onClick={edit} aria-label={t("chat.edit")} title={t("chat.edit")}>
          <Icon name="edit" size={16} />
        </button>
      )}
    </div>
  );
}

interface PartProps {
  part: Part;
  /** Who speaks. */
  by: string;
  ended: boolean;
  waits: boolean;
  /** The run ended with questions, which the host asks in its own box. */
  asked: boolean;
  /** One of them is about this part. */
  about: boolean;
  press: TurnActions["press"];
}

function PartView({ part, by, ended, waits, asked, about, press }: PartProps) {
  const { t } = useWords();
  switch (part.kind) {
    case "text":
      return part.erased ? (
        <p className="cut">{t("chat.erased")}</p>
      ) : part.text ? (
        <>
          <Markdown text={part.text} />
          {part.cut && <p className="cut">{t("chat.cut")}</p>}
        </>
      ) : null;
    case "reasoning":
      return part.text ? (
        <Folded name={keyOf(part)} className="reasoning">
          <summary>{t("chat.reasoning")}</summary>
          <Markdown text={part.text} />
        </Folded>
      ) : null;
    case "tool":
      return <ToolView part={part} ended={ended} waiting={waits} asked={about} />;
    case "card":
      return part.activity === "ui-schema" && !(asked && isOnlyButtons(part.content)) ? (
        <Within name={keyOf(part)}>
          <Card document={part.content} press={press} />
        </Within>
      ) : null;
    case "step":
      return (
        <p className="step">
          <Icon name={part.open ? "gauge" : "check"} size={14} /> {part.name}
        </p>
      );
    case "note": {
      const file = part.name === "paddock.artifact.created" ? fileOf(asRecord(part.value)) : null;
      return file && <FileView file={file} from={by} />; // the run's own page tells the rest
    }
  }
}

function ToolView({ part, ended, waiting, asked }: { part: ToolPart; ended: boolean; waiting: boolean; asked: boolean }) {
  const { t } = useWords();
  const [unfolded] = useKept(keyOf(part), false);
  const parts = useMemo(() => partsOf(part.result), [part.result]);
  const why = part.failed ? errorOf(part.result ?? "") : null;
  const state = part.failed ? "failed" : part.result !== null ? "done" : asked ? "needed" : waiting ? "open" : ended ? "unanswered" : "running";
  return (
    <Folded name={keyOf(part)} className={`tool ${state}`}>
      <summary>
        <Icon name={state === "failed" ? "warn" : "tool"} size={16} />
        <code>{part.name || t("chat.tool")}</code> <span>{t(`chat.tool_${state}`)}</span>
        {part.result !== null && <span className="tool-result">{parts ? <Summed parts={parts} /> : oneLine(why ?? part.result)}</span>}
      </summary>
      {part.args && (
        <>
          <h5>{t("chat.arguments")}</h5>
          <CodeBlock text={pretty(part.args)} language="json" />
        </>
      )}
      {part.result !== null && (
        <>
          <h5>{t("chat.result")}</h5>
          {why !== null ? <p className="ui-text error-text">{why}</p> : !parts ? <CodeBlock text={pretty(part.result)} /> : unfolded && <ResultParts parts={parts} from={part.name || t("chat.tool")} />}
        </>
      )}
    </Folded>
  );
}

/** What came back, on one line: how many pictures and files, and the words. */
function Summed({ parts }: { parts: readonly ResultPart[] }) {
  const { t } = useWords();
  const { text, pictures, files } = summed(parts);
  const counts = [pictures ? t("chat.pictures", { count: pictures }) : "", files ? t("chat.files", { count: files }) : ""];
  return [...counts, oneLine(text)].filter(Boolean).join(" · "); // where there is little room the words are cut, not the counts
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 80 ? `${line.slice(0, 80)}…` : line;
}

function Ending({ turn, agentName, withdraw }: { turn: Run; agentName: string; withdraw: TurnActions["withdraw"] }) {
  const { t } = useWords();
  const said = turn.parts.some((part) => part.kind === "text" && part.text !== "");
  switch (turn.status) {
    case "queued":
      return (
        <p className="state wait">
          {turn.position ? t("chat.queued", { position: turn.position }) : t("chat.queued_plain")}
          <button type="button" className="icon-button" onClick={() => withdraw(turn)}>
            <Icon name="close" size={14} /> {t("chat.unqueue")}
          </button>
        </p>
      );
    case "running":
      return (
        <p className="state busy" role="status">
          <span className="dots" aria-hidden="true">
            <i />
            <i />
            <i />
          </span>
          <span className={turn.parts.length ? "visually-hidden" : ""}>{t("chat.thinking", { agent: agentName })}</span>
        </p>
      );
    case "cancelled":
      return (
        <p className="state stopped">
          <Icon name="stop" size={14} /> <strong>{t("chat.cancelled")}</strong> <span>{t(said ? "chat.cancelled_text" : "chat.cancelled_early")}</span>
        </p>
      );
    case "failed":
      return (
        <div className="state failed" role="alert">
          <Icon name="warn" size={16} />
          <div>
            <strong>{t(endedByHost(turn.error?.code) ?? (said ? "chat.failed_middle" : "chat.failed"))}</strong>
            <Failure code={turn.error?.code ?? ""} message={turn.error?.message ?? ""} />
          </div>
        </div>
      );
    case "completed":
      if (isUnfinished(turn))
        return (
          <p className="state stopped">
            <Icon name="warn" size={14} /> <strong>{t("chat.unfinished")}</strong>
          </p>
        );
      return turn.steeredInto ? <p className="state wait">{t("chat.steered")}</p> : null;
  }
}

interface FooterProps {
  turn: Run;
  itemId: string | null;
  text: string;
  newest: boolean;
  busy: boolean;
  rating: "up" | "down" | undefined;
  actions: TurnActions;
}

function Footer({ turn, itemId, text, newest, busy, rating, actions }: FooterProps) {
  const { t, took, number } = useWords();
  const failed = isUnfinished(turn);
  const tokens = (turn.inputTokens ?? 0) + (turn.outputTokens ?? 0);
  const vote = (one: "up" | "down") => itemId && actions.rate(itemId, rating === one ? null : one);
  return (
    <div className={`turn-footer${newest || failed ? " always" : ""}`}>
      {text && <CopyButton text={text} label={t("chat.copy_text")} />}
      {turn.text !== null && (
        <button type="button" className="icon-button" disabled={busy} onClick={() => actions.regenerate(turn)} aria-label={t(failed ? "chat.retry" : "chat.regenerate")} title={t(failed ? "chat.retry" : "chat.regenerate")}>
          <Icon name="again" size={16} />
          {failed && <span>{t("chat.retry")}</span>}
        </button>
      )}
      {itemId && (
        <>
          <button type="button" className="icon-button" aria-pressed={rating === "up"} onClick={() => vote("up")} aria-label={t("chat.good")} title={t("chat.good")}>
            <Icon name="up" size={16} />
          </button>
          <button type="button" className="icon-button" aria-pressed={rating === "down"} onClick={() => vote("down")} aria-label={t("chat.bad")} title={t("chat.bad")}>
            <Icon name="down" size={16} />
          </button>
        </>
      )}
      <a className="icon-button" href={toRun(turn.turnId)} aria-label={t("chat.run")} title={t("chat.run")}>
        <Icon name="path" size={16} />
      </a>
      <span className="figures">
        {turn.startedAt !== null && turn.endedAt !== null && turn.endedAt >= turn.startedAt && took(turn.endedAt - turn.startedAt)}
        {tokens > 0 && ` · ${t("chat.tokens", { count: number(tokens) })}`}
      </span>
    </div>
  );
}
