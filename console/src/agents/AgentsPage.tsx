/** Agents and the programs behind them: how they are, how they are kept apart, and the way to change them. */
import { useState } from "react";
import type { AgentEntry, Localised } from "../api/shapes";
import { useWorld } from "../chat/world";
import { asRecord, asText } from "../model/events";
import { useLoaded } from "../ui/data";
import { Icon } from "../ui/icons";
import { Empty, Notice, ProblemNotice, Status } from "../ui/parts";
import { toAgent, toNewWith } from "../ui/router";
import { useWords } from "../words";
import { en, type WordKey } from "../words/en";
import { AgentEditor, type Outcome } from "./AgentEditor";
import type { RunnerEntry } from "../api/shapes";

export default function AgentsPage({ agent }: { agent: string | null }) {
  const { t } = useWords();
  const { agents, admin, agentName, known: listed } = useWorld();
  const runners = useLoaded<{ runners: RunnerEntry[] }>("/api/v1/runners", 10_000);
  // Here and not in the form: a new agent gets a form of its own as soon as it is saved, and that is where it is said.
  const [outcome, tell] = useState<Outcome | null>(null);
  return (
    <div className="page" tabIndex={0}>
      <div className="page-inner">
        <header className="page-head">
          {agent && (
            <a className="icon-button" href="#/agents" aria-label={t("ag.title")}>
              <Icon name="back" />
            </a>
          )}
          <h1>{agent === null ? t("ag.title") : agent === "+" ? t("ag.new") : agent}</h1>
          {!agent && admin && (
            <a className="button primary" href="#/agents/+">
              <Icon name="plus" /> {t("ag.new")}
            </a>
          )}
          {agent && agent !== "+" && listed.some((one) => one.agentId === agent) && (
            <a className="button" href={toNewWith(agent)}>
              {t("ag.chat", { agent: agentName(agent) })}
            </a>
          )}
        </header>
        {agents.value?.problem && <Notice tone="bad" title={agents.value.problem} />}
        {!(agent ? runners.value : agents.value) && !(agents.problem ?? runners.problem) && <p className="hint">{t("app.loading")}</p>}
        {agent ? (
          <>
            {runners.problem && !runners.value && <ProblemNotice problem={runners.problem} again={runners.again} />}
            {runners.value && <AgentEditor agent={agent} runners={runners.value.runners} outcome={outcome} tell={tell} />}
          </>
        ) : (
          <>
            {agents.value && !listed.length && <Empty icon="agents">{t("ag.none")}</Empty>}
            <div className="tiles">
              {listed.map((one) => (
                <AgentTile key={one.agentId} agent={one} />
              ))}
            </div>
            {runners.value && <h2>{t("ag.runners")}</h2>}
            {runners.problem && <ProblemNotice problem={runners.problem} again={runners.again} />}
            <div className="tiles">
              {(runners.value?.runners ?? []).map((one) => (
                <RunnerTile key={one.runnerId} runner={one} />
              ))}
            </div>
          </>
        )}
      </div>
    </div>
  );
}

function AgentTile({ agent }: { agent: AgentEntry }) {
  const { t, pick } = useWords();
  const { admin } = useWorld();
  const about = `ag.built_in.${agent.agentId}`;
  const builtIn = agent.origin === "built-in" && about in en ? (about as WordKey) : null;
  return (
    <article className="tile">
      <div className="tile-head">
        <h3>{agent.label || agent.agentId}</h3>
        <Status of={agent.health} />
      </div>
      <p>{(builtIn && t(builtIn)) || agent.description || pick(agent.runnerDescription)}</p>
      <p className="hint">
        <code>{agent.runnerId}</code>
      </p>
      <p className="hint">
        {t(`ag.origin.${agent.origin}` as WordKey)}
        {agent.default && ` · ${t("ag.default")}`}
      </p>
      {agent.problem && <p className="error-text">{agent.problem}</p>}
      <div className="row">
        <a className="button" href={toNewWith(agent.agentId)}>
          {t("ag.chat", { agent: agent.label || agent.agentId })}
        </a>
        <a className="button quiet" href={toAgent(agent.agentId)}>
          {t(admin && agent.origin === "api" ? "ag.edit" : "ag.look")}
        </a>
      </div>
    </article>
  );
}

function RunnerTile({ runner }: { runner: RunnerEntry }) {
  const { t, pick } = useWords();
  const manifest = asRecord(runner.manifest);
  const isolation = `ag.isolation.${runner.isolation}`;
  return (
    <article className="tile">
      <div className="tile-head">
        <h3>{pick(manifest["label"] as Localised) || runner.runnerId}</h3>
        <Status of={runner.state} />
      </div>
      <p>{pick(manifest["description"] as Localised)}</p>
      <dl className="facts">
        <div>
          <dt>{t("ag.isolation")}</dt>
          <dd>{isolation in en ? t(isolation as WordKey) : (runner.isolation ?? "")}</dd>
        </div>
        <div>
          <dt>{t("ag.version")}</dt>
          <dd>{asText(manifest["version"]) || asText(manifest["protocol_version"])}</dd>
        </div>
        {runner.pid !== undefined && (
          <div>
            <dt>{t("ag.process")}</dt>
            <dd>{runner.pid}</dd>
          </div>
        )}
      </dl>
      {runner.detail && <p className="error-text">{runner.detail}</p>}
    </article>
  );
}
