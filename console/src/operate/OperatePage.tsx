export default function OperatePage(_: Record<string, unknown>) { return null; }
