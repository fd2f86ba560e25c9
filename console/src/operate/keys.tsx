/** Who may come in: keys listed, made and revoked. A new key is shown once; the first one until it is said to be kept. */
import { useState, type FormEvent } from "react";
import { keepFreshKey, keyOfThisTab, post, remove } from "../api/client";
import { asProblem, sentence, useLoaded } from "../ui/data";
import { CodeBlock } from "../ui/Markdown";
import { Confirm, Notice } from "../ui/parts";
import { useWords } from "../words";
import { Listing } from "./table";

interface Key {
  keyId: string;
  workspace: string;
  user: string;
  role: string;
  createdAt?: string;
  revokedAt?: string;
}

export function KeysPart() {
  const { t, time } = useWords();
  const keys = useLoaded<{ keys: Key[] }>("/api/v1/api-keys");
  const [named, setUser] = useState<string | null>(null);
  const [chosen, setRole] = useState("user");
  // Who makes the first key is `dev`, without one: it becomes the key of an administrator, and of this tab.
  const first = keyOfThisTab() === null && keys.value?.keys.length === 0;
  const user = named ?? (first ? "dev" : "");
  const role = first ? "admin" : chosen;
  const [made, setMade] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [asked, setAsked] = useState<Key | null>(null);
  const attempt = (work: Promise<unknown>) => work.then(() => setProblem(null)).catch((error: unknown) => setProblem(sentence(asProblem(error), t))).finally(keys.again);
  const create = (event: FormEvent) => {
    event.preventDefault();
    void attempt(post<{ key: string }>("/api/v1/api-keys", { user: user.trim(), role }).then((answer) => (first ? keepFreshKey(answer.key) : setMade(answer.key))));
  };
  return (
    <>
      <section className="panel">
        <h2>{t("op.key_new")}</h2>
        {first && <Notice tone="wait" title={t("op.keys_first")} />}
        <form className="row" onSubmit={create}>
          <label className="field">
            <span>{t("op.key_user")}</span>
            <input value={user} required onChange={(event) => setUser(event.target.value)} />
          </label>
          <label className="field">
            <span>{t("op.key_role")}</span>
            <select value={role} disabled={first} onChange={(event) => setRole(event.target.value)}>
              <option value="user">{t("op.role.user")}</option>
              <option value="admin">{t("op.role.admin")}</option>
            </select>
          </label>
          <button type="submit" className="button primary">
            {t("op.key_new")}
          </button>
        </form>
        {first && <p className="hint">{t(user.trim() === "dev" ? "op.key_dev" : "op.key_not_dev")}</p>}
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
