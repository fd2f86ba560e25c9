/** A conversation: its turns, what waits for an answer, and the place to write. */
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { patch } from "../api/client";
import type { Approval } from "../api/shapes";
import { hasEnded } from "../model/run";
import { asProblem, sentence, useLoaded } from "../ui/data";
import { Icon } from "../ui/icons";
import { Notice } from "../ui/parts";
import { go, toNewWith, toThread } from "../ui/router";
import { useWords } from "../words";
import { Composer } from "./Composer";
import { sessionPath, ThreadFollower, type Followed } from "./follow";
import { Members } from "./Members";
import { ApprovalCard, HandoverCard, InterruptCards } from "./Questions";
import { cancelRun, control, editMessage, newOutgoing, rate, regenerate, sendMessage, type Outgoing, type Upload } from "./send";
import { TurnView, type TurnActions } from "./TurnView";
import { useWorld } from "./world";

const WINDOW = 60;

interface Pending {
  out: Outgoing;
  problem: string | null;
}

export function ChatPage({ thread, agent }: { thread: string | null; agent: string | null }) {
  const [draft, setDraft] = useState(() => crypto.randomUUID());
  const before = useRef(thread);
  useEffect(() => {
    if (thread === null && before.current !== null) setDraft(crypto.randomUUID()); // back to a new page, not a fresh start
    before.current = thread;
  }, [thread]);
  const id = thread ?? draft;
  return <Conversation key={id} id={id} fresh={thread === null} agent={agent} />;
}

function useFollowed(id: string, fresh: boolean): [ThreadFollower, Followed] {
  const follower = useMemo(() => new ThreadFollower(id), [id]);
  useEffect(() => {
    if (!fresh) follower.begin();
    return () => follower.stop();
  }, [follower]);
  return [follower, useSyncExternalStore(follower.subscribe, follower.snapshot)];
}

function Conversation({ id, fresh, agent }: { id: string; fresh: boolean; agent: string | null }) {
  const { t } = useWords();
  const { agentName, known, defaultAgent, threads } = useWorld();
  const [follower, { thread, connection, problem }] = useFollowed(id, fresh);
  const [pending, setPending] = useState<Pending[]>([]);
  const [stopping, setStopping] = useState<string | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const [feedback, setFeedback] = useState<Record<string, "up" | "down" | null>>({});
  const live = thread.turns.find((turn) => turn.status === "running") ?? thread.turns.find((turn) => turn.status === "queued");
  const approvals = useLoaded<{ approvals: Approval[] }>(fresh && !thread.turns.length ? null : "/api/v1/approvals?status=pending", live ? 2_000 : 15_000);
  const asked = (approvals.value?.approvals ?? []).filter((one) => one.threadId === id);
  const active = thread.active ?? agent ?? defaultAgent;

  const told = new Set(thread.turns.map((turn) => turn.messageId));
  const waiting = pending.filter((one) => !told.has(one.out.messageId));

  const attempt = useCallback(
    (work: Promise<unknown>) => {
      setRefused(null);
      return work.catch((error: unknown) => setRefused(sentence(asProblem(error), t)));
    },
    [t],
  );

  const dispatch = useCallback(
    (out: Outgoing) => {
      setPending((before) => [...before.filter((one) => one.out.runId !== out.runId), { out, problem: null }]);
      sendMessage(out)
        .then((accepted) => {
          if (accepted.created) {
            void patch(sessionPath(out.threadId), { title: titleOf(out.text) }).then(threads.again, () => undefined);
            go(toThread(out.threadId), true);
          }
          follower.begin();
        })
        .catch((error: unknown) => {
          const said = sentence(asProblem(error), t);
          setPending((before) => before.map((one) => (one.out.runId === out.runId ? { ...one, problem: said } : one)));
        });
    },
    [follower, t, threads],
  );

  const send = useCallback((text: string, uploads: Upload[] = []) => dispatch(newOutgoing(id, text, fresh ? agent : null, uploads)), [dispatch, id, fresh, agent]);

  const actions = useMemo<TurnActions>(
    () => ({
      regenerate: (itemId) => void attempt(regenerate(id, itemId).then(() => follower.reload())),
      edit: (itemId, text) => void attempt(editMessage(id, itemId, text).then(() => follower.reload())),
      rate: (itemId, rating) => {
        setFeedback((before) => ({ ...before, [itemId]: rating }));
        void attempt(rate(id, itemId, rating));
      },
      say: (text) => send(text),
      seen: (turnId) => follower.whole(turnId),
    }),
    [attempt, follower, id, send],
  );

  const stop = () => {
    if (!live) return;
    setStopping(live.turnId);
    void attempt(cancelRun(live.turnId)).finally(() => setTimeout(() => setStopping(null), 3000));
  };

  const rated = useMemo(() => {
    const all: Record<string, "up" | "down"> = { ...thread.feedback };
    for (const [item, rating] of Object.entries(feedback)) {
      if (rating) all[item] = rating;
      else delete all[item];
    }
    return all;
  }, [thread.feedback, feedback]);

  const newest = thread.turns.at(-1);
  const title = threads.value?.sessions.find((one) => one.threadId === id)?.title ?? thread.title;
  const empty = thread.turns.length === 0 && waiting.length === 0;
  if (connection === "gone" && empty)
    return (
      <div className="chat">
        <Notice tone="bad" title={t("chat.gone")}>
          <p>{problem}</p>
          <a className="button" href="#/">
            {t("threads.new")}
          </a>
        </Notice>
      </div>
    );

  return (
    <div className="chat">
      <header className="chat-head">
        <h1>{title ?? t("threads.untitled")}</h1>
        {fresh && empty && known.length > 1 && (
          <label className="who">
            <span className="hint">{t("chat.who")}</span>
            <select value={active ?? ""} onChange={(event) => go(toNewWith(event.target.value), true)}>
              {known.map((one) => (
                <option key={one.agentId} value={one.agentId}>
                  {one.label || one.agentId}
                </option>
              ))}
            </select>
          </label>
        )}
        {thread.members.length > 0 && (
          <Members
            members={thread.members}
            active={thread.active}
            onSwitch={(one) => void attempt(control(id, "SWITCH_AGENT", { agent_id: one }))}
            onInvite={(one) => void attempt(control(id, "INVITE_AGENT", { agent_id: one }))}
            onRemove={(one) => void attempt(control(id, "REMOVE_AGENT", { agent_id: one }))}
          />
        )}
      </header>
      <Scroller key={id} follower={follower} count={thread.turns.length + waiting.length} live={newest} hasMore={thread.hasMore}>
        {(from) => (
          <>
            {empty && connection !== "loading" && <Hello onTry={send} />}
            {empty && connection === "loading" && <p className="hint center">{t("app.loading")}</p>}
            {thread.turns.slice(from).map((turn) => (
              <TurnView key={turn.turnId} turn={turn} agentName={agentName(turn.agentId ?? active)} newest={turn === newest} busy={Boolean(live)} feedback={rated} actions={actions} />
            ))}
            {newest && hasEnded(newest) && newest.interrupts.length > 0 && <InterruptCards turn={newest} onAnswer={(_interrupt, _answer, words) => send(words)} />}
            {asked.map((approval) => (
              <ApprovalCard key={approval.approvalId} approval={approval} approvals={approvals} />
            ))}
            {thread.handover && (
              <HandoverCard handover={thread.handover} onAnswer={(yes) => void attempt(control(id, yes ? "HANDOVER_CONFIRM" : "HANDOVER_REJECT", {}, thread.handover?.txId))} />
            )}
            {waiting.map((one) => (
              <Sending key={one.out.runId} pending={one} onRetry={() => dispatch(one.out)} onDrop={() => setPending((before) => before.filter((other) => other !== one))} />
            ))}
          </>
        )}
      </Scroller>
      <div className="chat-foot">
        {connection === "lost" && <Notice tone="wait" title={t("chat.lost")} />}
        {refused && <Notice tone="bad" title={refused} />}
        {thread.closed ? (
          <Notice tone="wait" title={t("chat.closed")}>
            <button type="button" className="button" onClick={() => void attempt(control(id, "SESSION_OPEN"))}>
              {t("chat.reopen")}
            </button>
          </Notice>
        ) : (
          <Composer agent={agentName(active)} agents={known} busy={Boolean(live)} stopping={stopping === live?.turnId && stopping !== null} disabled={false} onSend={send} onStop={stop} />
        )}
      </div>
    </div>
  );
}

function titleOf(text: string): string {
  const line = text.replace(/^@\S+\s*/, "").split("\n")[0]?.trim() ?? "";
  return line.length > 60 ? `${line.slice(0, 57)}…` : line || text.slice(0, 60);
}

function Hello({ onTry }: { onTry: (text: string) => void }) {
  const { t } = useWords();
  return (
    <div className="hello">
      <h2>{t("chat.hello")}</h2>
      <p>{t("chat.hello_text")}</p>
      <div className="tries">
        {([t("chat.try.1"), t("chat.try.2"), t("chat.try.3")] as const).map((text) => (
          <button key={text} type="button" className="button" onClick={() => onTry(text)}>
            {text}
          </button>
        ))}
      </div>
    </div>
  );
}

function Sending({ pending, onRetry, onDrop }: { pending: Pending; onRetry: () => void; onDrop: () => void }) {
  const { t } = useWords();
  return (
    <article className="turn">
      <div className="asked">
        <div className="bubble pending">
          <p>{pending.out.text}</p>
        </div>
      </div>
      {pending.problem === null ? (
        <p className="state wait">{t("chat.sending")}</p>
      ) : (
        <div className="state failed" role="alert">
          <Icon name="warn" size={16} />
          <div>
            <strong>{t("chat.not_sent")}</strong>
            <p>{pending.problem}</p>
            <div className="row">
              <button type="button" className="button" onClick={onRetry}>
                {t("app.retry")}
              </button>
              <button type="button" className="button" onClick={onDrop}>
                {t("app.cancel")}
              </button>
            </div>
          </div>
        </div>
      )}
    </article>
  );
}

interface ScrollerProps {
  follower: ThreadFollower;
  count: number;
  live: unknown;
  hasMore: boolean;
  children: (from: number) => React.ReactNode;
}

/**
 * Keeps the newest words in sight while the person is at the end, and their place when they are not. Only the last
 * turns are drawn; more come when the person scrolls up, from what is loaded first and then from earlier days.
 */
function Scroller({ follower, count, live, hasMore, children }: ScrollerProps) {
  const { t } = useWords();
  const box = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const [shown, setShown] = useState(WINDOW);
  const kept = useRef<{ height: number; top: number } | null>(null);
  const from = Math.max(0, count - shown);

  const more = useCallback(() => {
    const element = box.current;
    if (!element) return;
    if (from > 0) {
      kept.current = { height: element.scrollHeight, top: element.scrollTop };
      setShown((before) => before + WINDOW);
    } else if (hasMore) {
      kept.current = { height: element.scrollHeight, top: element.scrollTop };
      setShown((before) => before + WINDOW);
      void follower.earlier();
    }
  }, [from, hasMore, follower]);

  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    setAtEnd(element.scrollHeight - element.scrollTop - element.clientHeight < 80);
    if (element.scrollTop < 200) more();
  };
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    if (kept.current && element.scrollHeight !== kept.current.height) {
      element.scrollTop = kept.current.top + element.scrollHeight - kept.current.height;
      kept.current = null;
    } else if (atEnd) element.scrollTop = element.scrollHeight;
  }, [count, live, from, atEnd]);

  useEffect(() => {
    const element = box.current;
    const content = element?.firstElementChild;
    if (!element || !content || !atEnd) return;
    const watcher = new ResizeObserver(() => {
      element.scrollTop = element.scrollHeight;
    });
    watcher.observe(content);
    return () => watcher.disconnect();
  }, [atEnd]);

  return (
    <div className="scroll-area">
      <div className="scroller" ref={box} onScroll={onScroll} role="log" aria-label={t("chat.messages")} aria-live="polite" tabIndex={0}>
        <div className="column">
          {(from > 0 || hasMore) && (
            <button type="button" className="button quiet center" onClick={more}>
              {t("chat.earlier")}
            </button>
          )}
          {children(from)}
        </div>
      </div>
      {!atEnd && (
        <button type="button" className="round to-end" onClick={() => setAtEnd(true)} aria-label={t("chat.to_bottom")} title={t("chat.to_bottom")}>
          <Icon name="arrow" />
        </button>
      )}
    </div>
  );
}
