export default function AgentsPage(_: Record<string, unknown>) { return null; }
