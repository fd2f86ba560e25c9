/** What every page needs to know: who we are, which agents there are, which conversations; and a way to ask again. */
import { createContext, useContext, useMemo, type ReactNode } from "react";
import type { AgentEntry, Me, SessionEntry } from "../api/shapes";
import { useLoaded, type Loaded } from "../ui/data";
import { useWords, type Speaker } from "../words";
import { known as knownWord } from "../words/said";

export interface World {
  me: Loaded<Me>;
  agents: Loaded<{ agents: AgentEntry[]; problem?: string }>;
  threads: Loaded<{ sessions: SessionEntry[]; next: number | null }>;
  admin: boolean;
  agentName: (id: string | null | undefined) => string;
  /** Agents a person may want to talk to. */
  known: AgentEntry[];
  defaultAgent: string | null;
}

const Context = createContext<World | null>(null);

export function Knowing({ children }: { children: ReactNode }) {
  const me = useLoaded<Me>("/api/v1/users/me");
  const agents = useLoaded<{ agents: AgentEntry[]; problem?: string }>("/api/v1/agents", 30_000);
  const threads = useLoaded<{ sessions: SessionEntry[]; next: number | null }>("/api/v1/agent/sessions?limit=200", 15_000);
  const { pick, t } = useWords();
  const listed = agents.value?.agents;
  const known = useMemo(() => inOrder((listed ?? []).map((agent) => named(agent, pick, t))), [listed, pick, t]);
  const world = useMemo<World>(
    () => ({
      me,
      agents,
      threads,
      admin: me.value?.role === "admin",
      agentName: (id) => known.find((agent) => agent.agentId === id)?.label || id || "",
      known,
      defaultAgent: known.find((agent) => agent.default)?.agentId ?? known[0]?.agentId ?? null,
    }),
    [me, agents, threads, known],
  );
  return <Context.Provider value={world}>{children}</Context.Provider>;
}

/** A runner that answers under its own name is called what it calls itself in this language; ours are what we call them. */
function named(agent: AgentEntry, pick: Speaker["pick"], t: Speaker["t"]): AgentEntry {
  const ours = agent.origin === "built-in" ? knownWord(`ag.name.${agent.agentId}`) : null;
  if (ours) return { ...agent, label: t(ours) };
  return agent.origin === "runner" && agent.label === agent.agentId ? { ...agent, label: pick(agent.runnerLabel) || agent.label } : agent;
}

/** Who answers unless somebody else is named, then those somebody made, then the programs as they come. */
function inOrder(agents: AgentEntry[]): AgentEntry[] {
  const rank = (agent: AgentEntry) => (agent.default ? 0 : agent.origin === "runner" ? 2 : 1);
  return agents.toSorted((one, other) => rank(one) - rank(other));
}

export function useWorld(): World {
  const world = useContext(Context);
  if (!world) throw new Error("no world around this part of the page");
  return world;
}
