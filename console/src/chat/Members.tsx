/** Who is in this conversation: who answers, who else is here, who could be asked to come. */
import { Icon } from "../ui/icons";
import { Menu } from "../ui/parts";
import { useWords } from "../words";
import { useWorld } from "./world";

interface Props {
  members: string[];
  active: string | null;
  onSwitch: (agent: string) => void;
  onInvite: (agent: string) => void;
  onRemove: (agent: string) => void;
}

export function Members({ members, active, onSwitch, onInvite, onRemove }: Props) {
  const { t } = useWords();
  const { agentName, known } = useWorld();
  const absent = known.filter((agent) => !members.includes(agent.agentId));
  return (
    <div className="members" role="group" aria-label={t("agents.in_chat")}>
      {members.map((member) => (
        <span key={member} className={`member${member === active ? " active" : ""}`}>
          <button type="button" onClick={() => onSwitch(member)} disabled={member === active} title={member === active ? t("agents.active") : t("agents.switch", { agent: agentName(member) })} aria-current={member === active ? "true" : undefined}>
            {agentName(member)}
          </button>
          {members.length > 1 && (
            <button type="button" className="remove" onClick={() => onRemove(member)} aria-label={t("agents.remove", { agent: agentName(member) })} title={t("agents.remove", { agent: agentName(member) })}>
              <Icon name="close" size={12} />
            </button>
          )}
        </span>
      ))}
      {absent.length > 0 && <Menu label={t("agents.invite")} icon="plus" items={absent.map((agent) => ({ label: agent.label || agent.agentId, act: () => onInvite(agent.agentId) }))} />}
    </div>
  );
}
