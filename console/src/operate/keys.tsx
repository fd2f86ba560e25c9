/** Who may come in: keys listed, made and revoked. A new key is shown once; the first one until it is said to be kept. */
import { useState, type FormEvent } from "react";
import { keepFreshKey, keyOfThisTab, post, remove } from "../api/client";
import { asProblem, sentence, useLoaded } from "../ui/data";
import { useKept } from "../ui/kept";
import { CodeBlock } from "../ui/Markdown";
import { Confirm, Notice } from "../ui/parts";
import { useWords } from "../words";
import { Listing } from "./table";
import type { KeyEntry as Key, TakenOver as Taken } from "../api/shapes";
import type { LeftByDev as Waiting } from "../api/types";


type Choice = "take" | "leave";

/** Conversations that stay because something goes on in them. */
class Stays extends Error {
  constructor(readonly count: number) {
    super();
  }
}

/** Hand over what `dev` said, part by part. Throws Stays when something cannot be handed over now. */
async function takeOver(user: string, tell: (left: number) => void): Promise<void> {
  for (;;) {
    const part = await post<Taken>("/api/v1/take-over", { user });
    if (!part.left) return;
    if (!part.conversations) throw new Stays(part.left);
    tell(part.left);
  }
}

export function KeysPart() {
  const { t, time } = useWords();
  const keys = useLoaded<{ keys: Key[] }>("/api/v1/api-keys");
  const [named, setUser] = useKept<string | null>("user of a new key", null);
  const [chosen, setRole] = useKept("role of a new key", "user");
  // Who makes the first key is `dev`, without one: it becomes the key of an administrator, and of this tab.
  const first = keyOfThisTab() === null && keys.value?.keys.length === 0;
  const waiting = useLoaded<Waiting>(first ? "/api/v1/take-over" : null, 10_000);
  const user = named ?? (first ? "dev" : "");
  const role = first ? "admin" : chosen;
  const someone = user.trim() !== "" && user.trim() !== "dev";
  const there = waiting.value ? waiting.value.conversations + waiting.value.automations : 0;
  const choosing = first && someone && there > 0;
  const [choice, setChoice] = useKept<Choice | null>("what becomes of dev", null);
  const [left, setLeft] = useState<number | null>(null);
  const [working, setWorking] = useState(false);
  const [made, setMade] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  // Until the list is there nobody knows whether `dev` stands in the field: a name typed earlier would be mixed with it.
  const ready = keys.value !== null || keys.problem !== null;
  const [asked, setAsked] = useState<Key | null>(null);
  const inWords = (error: unknown) => (error instanceof Stays ? t("op.take_busy", { count: error.count }) : sentence(asProblem(error), t));
  const attempt = (work: Promise<unknown>) => work.then(() => setProblem(null)).catch((error: unknown) => setProblem(inWords(error))).finally(keys.again);
  const make = async () => {
    // First this: with the first key nobody is `dev` any more, and only whoever runs the host may hand it over.
    if (choosing && choice === "take") await takeOver(user.trim(), setLeft);
    const answer = await post<{ key: string }>("/api/v1/api-keys", { user: user.trim(), role });
    if (first) keepFreshKey(answer.key);
    else setMade(answer.key);
    setUser(null);
  };
  const create = (event: FormEvent) => {
    event.preventDefault();
    setWorking(true);
    void attempt(make()).finally(() => {
      setWorking(false);
      setLeft(null);
      void waiting.again();
    });
  };
  return (
    <>
      <section className="panel">
        <h2>{t("op.key_new")}</h2>
        {first && <Notice tone="wait" title={t("op.keys_first")} />}
        <form onSubmit={create}>
          <div className="row">
            <label className="field">
              <span>{t("op.key_user")}</span>
              <input value={user} required disabled={working || !ready} onChange={(event) => setUser(event.target.value)} />
            </label>
            <label className="field">
              <span>{t("op.key_role")}</span>
              <select value={role} disabled={first || working} onChange={(event) => setRole(event.target.value)}>
                <option value="user">{t("op.role.user")}</option>
                <option value="admin">{t("op.role.admin")}</option>
              </select>
            </label>
            {!choosing && <Submit working={working} />}
          </div>
          {first && user.trim() === "dev" && <p className="hint">{t("op.key_dev")}</p>}
          {choosing && waiting.value && <WhatDevSaid waiting={waiting.value} user={user.trim()} choice={choice} working={working} onChoose={setChoice} />}
          {left !== null && <p role="status">{t("op.take_left", { count: left })}</p>}
        </form>
        {problem && <Notice tone="bad" title={problem} />}
        {made && (
          <>
            <Notice tone="info" title={t("op.key_once")} />
            <CodeBlock text={made} />
          </>
        )}
      </section>
      <Listing
        title={t("op.keys")}
        icon="key"
        empty={t("op.keys_none")}
        problem={keys.problem}
        again={keys.again}
        rows={keys.value?.keys ?? null}
        keyOf={(key) => key.keyId}
        columns={[
          { name: t("op.key_user"), show: (key) => key.user },
          { name: t("op.key_role"), show: (key) => t(key.role === "admin" ? "op.role.admin" : "op.role.user") },
          { name: t("op.time"), show: (key) => time(key.createdAt) },
          {
            name: t("op.action"),
            show: (key) =>
              key.revokedAt ? (
                <span className="hint">{t("op.key_revoked", { time: time(key.revokedAt) })}</span>
              ) : (
                <button type="button" className="button" onClick={() => setAsked(key)}>
                  {t("op.key_revoke")}
                </button>
              ),
          },
        ]}
      />
      {asked && (
        <Confirm
          text={t("op.key_sure", { user: asked.user })}
          word={t("op.key_revoke")}
          onNo={() => setAsked(null)}
          onYes={() => {
            setAsked(null);
            void attempt(remove(`/api/v1/api-keys/${encodeURIComponent(asked.keyId)}`));
          }}
        />
      )}
    </>
  );
}

function Submit({ working }: { working: boolean }) {
  const { t } = useWords();
  return (
    <button type="submit" className="button primary" disabled={working}>
      {t("op.key_new")}
    </button>
  );
}

/** Whoever makes the first key for somebody says what becomes of what was said before; nothing is chosen for them. */
function WhatDevSaid({ waiting, user, choice, working, onChoose }: { waiting: Waiting; user: string; choice: Choice | null; working: boolean; onChoose: (choice: Choice) => void }) {
  const { t, number } = useWords();
  const options: [Choice, string, string][] = [
    ["take", t("op.take", { user, conversations: number(waiting.conversations), automations: number(waiting.automations) }), t("op.take_help", { user })],
    ["leave", t("op.leave", { user }), t("op.leave_help", { user })],
  ];
  return (
    <fieldset disabled={working}>
      <legend>{t("op.take_title")}</legend>
      {options.map(([value, label, help]) => (
        <label key={value} className="choice wide">
          <input type="radio" name="take-over" required checked={choice === value} onChange={() => onChoose(value)} />
          <span>
            {label} <small className="hint">{help}</small>
          </span>
        </label>
      ))}
      <div className="row end">
        <Submit working={working} />
      </div>
    </fieldset>
  );
}
