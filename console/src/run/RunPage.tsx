export default function RunPage(_: Record<string, unknown>) { return null; }
