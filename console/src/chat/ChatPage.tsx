/** A conversation: its turns, what waits for an answer, and the place to write. */
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { get } from "../api/client";
import type { AgentEntry, Approval } from "../api/shapes";
import { hasEnded, type Run } from "../model/run";
import { newId } from "../ui/anywhere";
import { asProblem, sentence, useLoaded } from "../ui/data";
import { Icon } from "../ui/icons";
import { useKept, Within } from "../ui/kept";
import { Confirm, Notice } from "../ui/parts";
import { go, toNewWith, toThread, type Sought } from "../ui/router";
import { useWords } from "../words";
import { Composer } from "./Composer";
import { ThreadFollower, type Followed } from "./follow";
import { Members } from "./Members";
import { answerOpen } from "./answers";
import { ApprovalCard, HandoverCard, OpenQuestions, openOf } from "./Questions";
import { Scroller } from "./Scroller";
import { cancelRun, control, editMessage, newOutgoing, rate, regenerate, sendMessage, useAction, type Outgoing, type Upload } from "./send";
import { useSought } from "./sought";
import { TurnView, type TurnActions } from "./TurnView";
import { useWorld } from "./world";

const FIRST = newId();

interface Pending {
  out: Outgoing;
  problem: string | null;
}

export function ChatPage({ thread, agent, sought }: { thread: string | null; agent: string | null; sought: Sought | null }) {
  const [draft, setDraft] = useKept<string>("new", FIRST);
  const renew = useCallback(() => setDraft(newId()), [setDraft]);
  useEffect(() => {
    if (thread === draft) renew(); // it is a conversation now; what is begun next is another one
  }, [thread, draft, renew]);
  const id = thread ?? draft;
  return (
    <Within name={id}>
      <Conversation key={id} id={id} fresh={thread === null} agent={agent} sought={sought} onLeftBehind={renew} />
    </Within>
  );
}

function useFollowed(id: string, fresh: boolean): [ThreadFollower, Followed] {
  const follower = useMemo(() => new ThreadFollower(id), [id]);
  useEffect(() => {
    if (!fresh) follower.begin();
    return () => follower.stop();
  }, [follower]);
  return [follower, useSyncExternalStore(follower.subscribe, follower.snapshot)];
}

interface ConversationProps {
  id: string;
  fresh: boolean;
  agent: string | null;
  /** A message of it that was looked for. */
  sought: Sought | null;
  /** It was begun, and the person had gone elsewhere by then. */
  onLeftBehind: () => void;
}

function Conversation({ id, fresh, agent, sought, onLeftBehind }: ConversationProps) {
  const { t } = useWords();
  const { agents, agentName, known, defaultAgent, threads } = useWorld();
  const [follower, { thread, connection, problem }] = useFollowed(id, fresh);
  const { search, goal, turnId: soughtTurn } = useSought(sought, follower, connection === "live" || (connection === "lost" && thread.turns.length > 0));
  const forget = useCallback(() => go(toThread(id), true), [id]);
  const [pending, setPending] = useKept<Pending[]>("pending", []);
  const [stopping, setStopping] = useState<string | null>(null);
  const unwanted = useRef(new Set<string>()); // messages that were stopped while they were on their way
  const taken = useRef(new Map<string, string>()); // messages that the host has, and the run of each
  const [again, setAgain] = useState<Run | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const [feedback, setFeedback] = useState<Record<string, "up" | "down" | null>>({});
  useEffect(() => {
    if (connection === "live") setRefused((said) => (said === t("app.unreachable") ? null : said)); // it is reached again
  }, [connection, t]);
  const live = thread.turns.find((turn) => turn.status === "running") ?? thread.turns.find((turn) => turn.status === "queued");
  const approvals = useLoaded<{ approvals: Approval[] }>(fresh && !thread.turns.length ? null : "/api/v1/approvals?status=pending", live ? 2_000 : 15_000);
  const newest = thread.turns.at(-1);
  const open = openOf(newest);
  const mine = (approvals.value?.approvals ?? []).filter((one) => one.threadId === id);
  const asked = mine.filter((one) => !open.interrupts.some((interrupt) => interrupt.id === one.approvalId));
  const { again: askApprovals } = approvals;
  const questions = open.interrupts.map((one) => one.id).join();
  const [looked, setLooked] = useState("");
  useEffect(() => {
    if (questions) void askApprovals().then(() => setLooked(questions)); // the host's own among them are shown with what they are about
  }, [questions, askApprovals]);
  const active = thread.active ?? agent ?? defaultAgent;

  const waiting = useMemo(() => {
    if (!pending.length) return pending;
    const told = new Set(thread.turns.map((turn) => turn.messageId));
    return pending.filter((one) => !told.has(one.out.messageId));
  }, [pending, thread.turns]);
  useEffect(() => {
    if (waiting !== pending && waiting.length < pending.length) setPending(waiting);
  }, [waiting, pending, setPending]);
  const here = useRef(true);
  useEffect(() => {
    here.current = true;
    return () => void (here.current = false);
  }, []);
  const earlier = useCallback(() => follower.earlier().catch((error: unknown) => setRefused(sentence(asProblem(error), t))), [follower, t]);

  const attempt = useCallback(
    (work: Promise<unknown>) => {
      setRefused(null);
      return work.catch((error: unknown) => setRefused(sentence(asProblem(error), t)));
    },
    [t],
  );

  const listed = useRef(agents.value); // as `there` below
  listed.current = agents.value;
  /** A first message goes to whom it calls by name, also when it is sent before the list of names is there. */
  const addressed = useCallback(
    async (out: Outgoing): Promise<Outgoing> => {
      if (!fresh || !out.text.startsWith("@")) return out;
      const { agents } = listed.current ?? (await get<{ agents: AgentEntry[] }>("/api/v1/agents"));
      return { ...out, agent: mentionedIn(out.text, agents) ?? out.agent };
    },
    [fresh],
  );

  const dispatch = useCallback(
    (out: Outgoing) => {
      setPending((before) => [...before.filter((one) => one.out.runId !== out.runId), { out, problem: null }]);
      addressed(out)
        .then(sendMessage)
        .then((accepted) => {
          taken.current.set(out.runId, accepted.taskId);
          if (unwanted.current.delete(out.runId)) void attempt(cancelRun(accepted.taskId));
          if (accepted.created) {
            void threads.again(); // the host calls it by its first words
            if (here.current) go(toThread(out.threadId), true);
            else onLeftBehind();
          }
          if (here.current) follower.begin();
        })
        .catch((error: unknown) => {
          unwanted.current.delete(out.runId);
          setStopping((one) => (one === out.runId ? null : one));
          const problem = asProblem(error);
          const said = problem.status === 0 ? t("chat.not_reached") : sentence(problem, t); // nothing is sent again by itself
          setPending((before) => before.map((one) => (one.out.runId === out.runId ? { ...one, problem: said } : one)));
        });
    },
    [addressed, attempt, follower, t, threads, onLeftBehind],
  );

  const [said, setSaid] = useState(0);
  const send = useCallback(
    (text: string, uploads: Upload[] = []) => {
      setSaid((count) => count + 1);
      dispatch(newOutgoing(id, text, fresh ? agent : null, uploads));
    },
    [dispatch, id, fresh, agent],
  );

  /** Who answered this, unless they are no longer there. */
  const there = useRef(known); // the list is read anew now and then, and no turn is drawn anew for that
  there.current = known;
  const still = useCallback(({ agentId }: Run) => (there.current.some((one) => one.agentId === agentId) ? agentId : null), []);
  const last = useRef(newest); // as `there`
  last.current = newest;
  const askAgain = useCallback((turn: Run) => void attempt(regenerate(id, askedIn(turn), still(turn)).then(() => follower.reload())), [attempt, follower, id, still]);
  const actions = useMemo<TurnActions>(
    () => ({
      regenerate: (turn) => (turn.turnId === last.current?.turnId ? askAgain(turn) : setAgain(turn)),
      withdraw: (turn) => void attempt(cancelRun(turn.turnId)),
      edit: (turn, text) => void attempt(editMessage(id, askedIn(turn), text, text.startsWith("@") ? null : still(turn)).then(() => follower.reload())),
      rate: (itemId, rating) => {
        setFeedback((before) => ({ ...before, [itemId]: rating }));
        void attempt(rate(id, itemId, rating));
      },
      press: useAction,
      sight: (turnId, here) => follower.sight(turnId, here),
    }),
    [askAgain, attempt, follower, id, still],
  );

  const sending = waiting.find((one) => one.problem === null)?.out.runId;
  const stoppable = live?.turnId ?? sending;
  const stop = () => {
    if (!stoppable) return;
    setStopping(stoppable);
    const run = live?.turnId ?? taken.current.get(stoppable);
    if (run) void attempt(cancelRun(run)).finally(() => setTimeout(() => setStopping(null), 3000));
    else unwanted.current.add(stoppable);
  };

  const rated = useMemo(() => {
    const all: Record<string, "up" | "down"> = { ...thread.feedback };
    for (const [item, rating] of Object.entries(feedback)) {
      if (rating) all[item] = rating;
      else delete all[item];
    }
    return all;
  }, [thread.feedback, feedback]);

  const lastEnded = newest && hasEnded(newest) ? newest.turnId : null;
  const { again: askThreads } = threads;
  useEffect(() => {
    if (lastEnded) void askThreads(); // its place in the list, and a title the agent may have given
  }, [lastEnded, askThreads]);
  const title = threads.value?.sessions.find((one) => one.threadId === id)?.title ?? thread.title;
  const empty = thread.turns.length === 0 && waiting.length === 0;
  if (connection === "deleted" || (connection === "gone" && empty))
    return (
      <div className="chat">
        <Notice tone="bad" title={t(connection === "deleted" ? "chat.deleted" : "chat.gone")}>
          {problem && <p>{problem}</p>}
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
      <Scroller
        key={id}
        turns={thread.turns}
        hasMore={thread.hasMore}
        onEarlier={earlier}
        goal={goal}
        onMoved={forget}
        said={said}
        draw={(index) => {
          const turn = thread.turns[index];
          const speaker = turn ? (speakerOf(turn, known) ?? active) : null;
          return (
            turn && (
              <TurnView
                turn={turn}
                agentId={speaker}
                agentName={agentName(speaker)}
                newest={turn === newest}
                busy={Boolean(live)}
                feedback={rated}
                actions={actions}
                place={index + 1}
                of={thread.turns.length}
                newDay={newDay(turn, thread.turns[index - 1])}
                sought={turn.turnId === soughtTurn}
              />
            )
          );
        }}
        head={
          <>
            {empty && connection !== "loading" && <Hello onTry={send} />}
            {empty && connection === "loading" && <p className="hint center">{t("app.loading")}</p>}
          </>
        }
      >
        {newest && (questions === "" || looked === questions) && open.interrupts.length + open.tools.length > 0 && (
          <Within name={`${newest.turnId} questions`}>
            <OpenQuestions key={newest.turnId} turn={newest} open={open} approvals={mine} onAnswer={(resume, tools) => answerOpen(id, newest.agentId, resume, tools).finally(approvals.again)} />
          </Within>
        )}
        {asked.map((approval) => (
          <ApprovalCard key={approval.approvalId} approval={approval} approvals={approvals} />
        ))}
        {thread.handover && <HandoverCard handover={thread.handover} onAnswer={(yes) => void attempt(control(id, yes ? "HANDOVER_CONFIRM" : "HANDOVER_REJECT", {}, thread.handover?.txId))} />}
        {waiting.map((one) => (
          <Sending key={one.out.runId} pending={one} onRetry={() => dispatch(one.out)} onDrop={() => setPending((before) => before.filter((other) => other !== one))} />
        ))}
      </Scroller>
      {again && (
        <Confirm
          text={t("chat.again_sure")}
          word={t("chat.retry")}
          onNo={() => setAgain(null)}
          onYes={() => {
            askAgain(again);
            setAgain(null);
          }}
        />
      )}
      <Spoken turn={newest} name={agentName(newest?.agentId ?? active)} />
      <div className="chat-foot">
        {connection === "lost" && <Notice tone="wait" title={t("chat.lost")} />}
        {search === "looking" && <Notice tone="wait" title={t("chat.sought_looking")} />}
        {search === "missing" && sought && <Notice tone="wait" title={t("chat.sought_missing")} />}
        {refused && <Notice tone="bad" title={refused} />}
        {thread.closed ? (
          <Notice tone="wait" title={t("chat.closed")}>
            <button type="button" className="button" onClick={() => void attempt(control(id, "SESSION_OPEN"))}>
              {t("chat.reopen")}
            </button>
          </Notice>
        ) : (
          <Composer agent={agentName(active)} agents={known} busy={stoppable !== undefined} stopping={stopping !== null && stopping === stoppable} said={said} disabled={false} onSend={send} onStop={stop} />
        )}
      </div>
    </div>
  );
}

/** Who answers this, or will: a mention counts when its turn comes. */
function speakerOf({ status, text, agentId }: Run, known: AgentEntry[]): string | null {
  return (status === "queued" && mentionedIn(text ?? "", known)) || agentId;
}

/** Whom a message calls by name at its beginning. */
function mentionedIn(text: string, known: AgentEntry[]): string | null {
  const name = /^@(\S+)/.exec(text)?.[1];
  return known.find((one) => one.agentId === name)?.agentId ?? null;
}

const askedIn = (turn: Run): string => `${turn.turnId}.0`;

/** The moment of a turn with which a day begins. */
function newDay(turn: Run, before: Run | undefined): number | null {
  const [mine, last] = [turn.startedAt, before?.startedAt ?? null];
  return mine === null || (last !== null && new Date(mine).toDateString() === new Date(last).toDateString()) ? null : mine;
}

/** For ears: an answer is read out when it is whole, and not again when somebody scrolls past it. */
function Spoken({ turn, name }: { turn: Run | undefined; name: string }) {
  const [heard, setHeard] = useState<string | null>(null);
  const going = turn && !hasEnded(turn) ? turn.turnId : null;
  useEffect(() => {
    if (going) setHeard(going);
  }, [going]);
  const { t } = useWords();
  const words = turn && turn.turnId === heard && hasEnded(turn) ? turn.parts.flatMap((part) => (part.kind === "text" ? [part.text, part.cut ? t("chat.cut") : ""] : [])).join(" ").trim() : "";
  return (
    <p className="visually-hidden" aria-live="polite">
      {words && `${name}: ${words}`}
    </p>
  );
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
