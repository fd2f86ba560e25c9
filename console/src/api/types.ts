/** The shapes of the HTTP API. Made by `make types` from its OpenAPI document; not to be changed by hand. */

/** A run that is on record. */
export interface Accepted {
  taskId: string;
  threadId: string;
  runId: string;
  created: boolean;
}

export interface ActivityMessage {
  role: "activity";
  id: string;
  activityType: string;
  content: Record<string, unknown>;
}

export interface ActivitySnapshotEvent {
  type: "ACTIVITY_SNAPSHOT";
  messageId: string;
  activityType: string;
  content: Record<string, unknown>;
  metadata?: Record<string, unknown>;
}

export interface ActorShape {
  actor_type?: string;
  actor_id: string;
  actor_name?: string | null;
  metadata?: Record<string, unknown>;
}

export interface AgUiConnect {
  threadId: string;
  runId?: string | null;
  protocolVersion?: string | null;
}

export type AgUiEvent = RunStartedEvent | RunFinishedEvent | RunErrorEvent | TextMessageStartEvent | TextMessageContentEvent | TextMessageEndEvent | ToolCallStartEvent | ToolCallArgsEvent | ToolCallEndEvent | ToolCallResultEvent | StepStartedEvent | StepFinishedEvent | ActivitySnapshotEvent | MessagesSnapshotEvent | CustomEvent;

/** An agent. Its definition and its problem are for administrators. */
export interface Agent {
  agentId: string;
  label: string;
  description: string;
  runnerId: string;
  default: boolean;
  origin: "api" | "built-in" | "file" | "runner";
  health: "ok" | "problem" | "unknown";
  isolation?: string;
  problem?: string;
  runnerLabel?: Record<string, string> | string;
  runnerDescription?: Record<string, string> | string;
  definition?: Record<string, unknown>;
}

export interface AgentList {
  agents: Agent[];
  /** Of the agents file, for whoever runs the host. */
  problem?: string;
}

/** One agent. */
export interface AgentShape {
  /** The program that answers: plugin:AUTHOR/NAME/RUNNER. */
  runner: string;
  /** Its name for people; the agent's id unless set. */
  label?: string | null;
  /** What it is good for. */
  description?: string;
  /** What the agent is to do; reaches the runner in its config. */
  instructions?: string | null;
  /** Facts the agent should always know; reach the runner in its config. */
  context?: ContextItem[];
  /** The runner's own settings. */
  config?: Record<string, unknown>;
  /** Event types it answers; one may end in .*, and * means all. Exactly one agent may match an event. */
  events?: string[];
  /** Models it may use. */
  models?: "all" | string[] | Record<string, "all" | ("invoke" | "stream" | "rerank")[]>;
  /** Tools it may call; read_only means those that change nothing. */
  tools?: "all" | "read_only" | string[] | Record<string, "all" | ("detail" | "call")[]>;
  /** Knowledge bases it may list and search. */
  knowledge_bases?: "all" | string[] | Record<string, "all" | ("list" | "retrieve")[]>;
  /** May read the conversation's history. */
  history?: boolean;
  /** workspace: may read other conversations of the workspace too; agents file only. */
  history_scope?: "conversation" | "workspace";
  /** May read the conversation's event log. */
  event_log?: boolean;
  /** What it may do with the conversation's files. */
  artifacts?: ("metadata" | "read" | "create")[];
  /** Where it may keep small values between runs: conversation, actor, subject, runner, binding. */
  state_scopes?: string[];
  /** Areas where it may keep data. */
  storage?: ("plugin" | "workspace" | "binding")[];
  /** Files it is given: paths beside the agents file; over the API, ids of your own uploads. */
  files?: string[];
  /** Actions it may ask for; each still needs a person's approval. */
  platform_actions?: string[];
  /** Skills the runner may use: names, or {name, display_name, description, path}; path is a directory with a SKILL.md. */
  skills?: Skill[];
  /** MCP servers the runner's program may use directly: {name, url, headers}; over the API, at opened addresses only. */
  mcp?: McpEndpoint[];
  /** Its runs may reach what they were granted over an MCP endpoint of their own. */
  run_endpoint?: boolean;
  /** An existing directory its runs work in, beside the agents file or absolute; agents file only. Unless set, each conversation has one of its own. */
  working_directory?: string | null;
  /** Directories its runs may read at isolation L1, such as where a program is installed; agents file only. */
  readable?: string[];
  /** Show it the client's own tools; unless set, the AG-UI door does and the others do not. */
  frontend_tools?: boolean | null;
  /** Stop a run when the AG-UI client that asked for it goes away; otherwise it goes on. */
  cancel_on_disconnect?: boolean;
  /** What happens to input that arrives while it runs: `queue` (wait in line), `steer` (offered to the running turn if its runner declares steering, else like `queue`), `interrupt` (stop the running turn and go next), `reject` (refuse). */
  while_busy?: "queue" | "steer" | "interrupt" | "reject";
  /** How long a run may take; the host's setting unless set. */
  deadline_seconds?: number | null;
  /** How far its runs are kept apart at least; it does not run where that cannot be had. */
  isolation?: "L0" | "L1" | null;
  /** Language to assume, such as zh_Hans. */
  locale?: string | null;
  /** Time zone to assume when the client says none, such as Asia/Shanghai. */
  time_zone?: string | null;
}

export interface Alive {
  status: string;
}

/** The grant and the context of a run that is worked out and not started. */
export interface Allowance {
  agentId: string;
  runnerId: string;
  event: string;
  answers: boolean;
  grant?: Record<string, unknown>;
  context?: Record<string, unknown>;
  problem?: string;
}

/** Something that an agent wants to do on a platform. */
export interface Approval {
  approvalId: string;
  taskId: string;
  threadId: string;
  agentId: string;
  action: string;
  target: unknown;
  payload: unknown;
  status: "denied" | "expired" | "granted" | "pending";
  outcome: string;
  createdAt: string;
  expiresAt: string;
  detail?: string;
  decidedAt?: string;
}

export interface ApprovalList {
  approvals: Approval[];
}

export interface AssistantMessage {
  role: "assistant";
  id: string;
  content?: string | null;
  toolCalls?: FunctionCall[];
  name?: string | null;
  encryptedValue?: string | null;
}

export interface AttachToken {
  token: string;
  path: string;
}

export interface Attachment {
  /** The attachment. */
  attachmentId: string;
  status: "pending" | "ready";
  mimeType?: string;
  size?: number;
  filename?: string;
  url?: string;
  threadId?: string;
  expiresAt?: string;
  width?: number;
  height?: number;
  upload?: UploadAddress;
}

export interface AuditedDecision {
  number: number;
  time: string;
  actor: string;
  action: string;
  resource: string;
  scope: string;
  result: string;
  reason: string;
  reasonCode?: string;
  reasonParams?: Record<string, string>;
  taskId?: string;
  runnerId?: string;
  threadId?: string;
}

/** A job with its next ticks. */
export interface Automation {
  jobId: string;
  threadId: string;
  name: string;
  prompt: string;
  timeZone: string;
  agentId: string | null;
  missed: "run_once" | "skip";
  enabled: boolean;
  config: AutomationConfig;
  startsAt: string;
  nextAt: string | null;
  upcoming: string[];
  createdAt: string;
  updatedAt: string;
  cron?: string;
  rrule?: string;
}

export interface AutomationChange {
  name?: string;
  prompt?: string;
  cron?: string | null;
  rrule?: string | null;
  timeZone?: string | null;
  startsAt?: string | null;
  agentId?: string | null;
  missed?: "skip" | "run_once";
  enabled?: boolean;
  config?: ConfigShape;
}

/** Settings of the runs of a job. */
export interface AutomationConfig {
  enabledTools: string[] | null;
  context: AutomationContext[];
}

export interface AutomationContext {
  description: string;
  value: string;
}

export interface AutomationList {
  automations: Automation[];
}

export interface Base {
  kbId: string;
  name: string;
  description: string;
  createdAt: number;
  embeddingModel?: string;
}

export interface BaseList {
  bases: Base[];
}

/** One time that an event takes place. `start` and `end` are on the wall of `eventTimezone`. */
export interface CalendarOccurrence {
  eventId: string;
  title: string;
  start: string;
  end: string;
  allDay: boolean;
  eventTimezone: string;
  startsAt: string;
  endsAt: string;
  busy: boolean;
  rrule?: string;
  description?: string;
  location?: string;
}

export interface CalendarPage {
  from: string;
  to: string;
  events: CalendarOccurrence[];
  hasMore: boolean;
}

export interface CalledFunction {
  name: string;
  arguments: string;
}

/** In AG-UI's own shape; what is ours beside it is under `custom`. What is not said is not declared. */
export interface Capabilities {
  identity: Record<string, string>;
  transport: Record<string, boolean>;
  tools: Record<string, boolean>;
  state: Record<string, boolean>;
  multiAgent: Record<string, boolean>;
  multimodal: Record<string, Record<string, boolean>>;
  humanInTheLoop: Record<string, boolean>;
  custom: Record<string, unknown>;
}

export interface ChoiceShape {
  interaction_id?: string | null;
  action_id?: string | null;
  values?: Record<string, unknown>;
}

export interface ClientContext {
  description: string;
  value: string;
}

export interface ClientTime {
  /** An IANA zone. */
  device_timezone: string;
  client_now_iso: string;
  client_epoch_ms: number;
}

export interface ClientTool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

/** `AutomationJob.config`: the tools and context of the job's runs. */
export interface ConfigShape {
  enabledTools?: string[] | null;
  context?: ContextShape[];
}

/** A fact the agent should always know. */
export interface ContextItem {
  description: string;
  value: string;
}

export interface ContextShape {
  description: string;
  value: string;
}

export interface Control {
  subtype: "CANCEL" | "HANDOVER_CONFIRM" | "HANDOVER_REJECT" | "INTERRUPT" | "INVITE_AGENT" | "REMOVE_AGENT" | "SESSION_CLOSE" | "SESSION_OPEN" | "SWITCH_AGENT";
  payload?: Record<string, unknown>;
  txId?: string | null;
  tx_id?: string | null;
  turnId?: string | null;
  turn_id?: string | null;
}

export interface ControlAnswer {
  txId: string;
  said: string[];
  note?: string;
  turnId?: string;
}

export interface CustomEvent {
  type: "CUSTOM";
  /** Those of ours begin with `paddock.`. */
  name: string;
  value: unknown;
  metadata?: Record<string, unknown>;
}

export interface Decision {
  decision: "deny" | "grant";
}

export interface DecisionList {
  decisions: AuditedDecision[];
  next: string | null;
}

/** Everything of a delivery but its words: those are in the conversation, for whom it belongs to. */
export interface Delivery {
  /** Its deliveryId. */
  deliveryId: string;
  platform: string;
  type: string;
  threadId: string;
  taskId: string;
  status: "dead" | "delivered" | "pending";
  attempts: number;
  createdAt: string;
  detail?: string;
  dueAt?: string;
  endedAt?: string;
}

export interface DeliveryList {
  deliveries: Delivery[];
}

export interface DeliveryShape {
  reply_target?: Record<string, unknown>;
}

export interface DeveloperMessage {
  role: "developer";
  id: string;
  content: string;
  name?: string | null;
  encryptedValue?: string | null;
}

export interface Document {
  documentId: string;
  name: string;
  mediaType: string;
  sizeBytes: number;
  sha256: string;
  passages: number;
  createdAt: number;
  metadata: Record<string, unknown>;
}

export interface DocumentList {
  documents: Document[];
  hasMore: boolean;
}

export interface Edit {
  itemId: string;
  content: string;
  runId?: string | null;
  agentId?: string | null;
}

export interface Erased {
  erased: boolean;
  copies: number;
  artifacts: number;
}

export interface Erasing {
  /** Also the files that it refers to. */
  artifacts?: boolean;
}

export interface EventAccepted {
  taskId: string;
  threadId: string;
  runId: string;
}

/** Which layer decided, in words, and how often the call was made and how it was answered. */
export interface Explanation {
  taskId: string;
  agentId: string;
  runnerId: string;
  action: string;
  resource: string;
  granted: boolean;
  allowed: boolean;
  layer: string;
  because: string[];
  reasons: Reason[];
  decisions: Record<string, number>;
}

/** A conversation, whole. */
export interface Export {
  threadId: string;
  title: string | null;
  createdAt: string;
  updatedAt: string;
  messages: ExportedItem[];
}

export interface ExportedItem {
  id: string;
  seq: number;
  role: string;
  type: string;
  content: string;
  timestamp: string;
  taskId?: string;
  agentId?: string;
  details?: Record<string, unknown>;
  partial?: boolean;
  feedback?: Opinion;
}

export interface Feedback {
  rating: "down" | "up" | null;
  comment?: string | null;
}

/** A file of a message: its bytes, or a reference to a file of this host. Its type is judged by its content. */
export interface FileShape {
  artifact_id?: string | null;
  url?: string | null;
  content?: string | null;
  name?: string | null;
}

/** The outcome of one tick. `tick` is also the cursor of the next page. */
export interface Firing {
  tick: number;
  scheduledAt: string;
  result: string;
  at: string;
  through?: string;
  taskId?: string;
  reason?: string;
}

export interface FiringList {
  firings: Firing[];
}

export interface ForwardedProps {
  runtime_mode: "automation" | "chat";
  client_time?: ClientTime;
}

/** Where the words of a search stand: in the title, in a message, or in both. */
export interface Found {
  title?: Piece[];
  message?: FoundMessage;
}

export interface FoundMessage {
  itemId: string;
  role: "assistant" | "user";
  timestamp: string;
  snippet: Piece[];
  agentId?: string;
}

export interface FoundPassage {
  id: string;
  text: string;
  score: number;
  /** Where it stands, so that it can be cited. */
  place: Record<string, unknown>;
}

export interface FunctionCall {
  id: string;
  type: "function";
  function: CalledFunction;
  encryptedValue?: string | null;
}

/** One day of a conversation; empty when there is no such day. */
export interface HistoryDay {
  scope: "history_day";
  threadId: string | null;
  day: string | null;
  hasMore: boolean;
  messages: (SaidByUser | SaidByAgent)[];
  truncated?: boolean;
}

export interface HistoryFile {
  mimeType: string;
  url: string;
}

export interface ImageBlock {
  type: "binary";
  mimeType: string;
  url: string;
  id?: string;
  filename?: string;
}

/** A turn that has not ended. */
export interface InflightTurn {
  turnId: string;
  traceId: string;
  requestedBy: string;
  targetAgentId: string;
  status: "QUEUED" | "ROUTING" | "RUNNING";
  createdAt: string;
  lastOutputAt: string | null;
  collectedOutput: string;
  waiting: string[];
  parentTurnId: string | null;
}

/** A document on its way in. */
export interface IngestJob {
  jobId: string;
  kbId: string;
  documentId: string;
  name: string;
  status: string;
  done: number;
  total: number;
  message: string;
}

export interface IngestJobList {
  jobs: IngestJob[];
  hasMore: boolean;
}

export interface InputShape {
  text?: string;
  attachments?: FileShape[];
  interaction?: ChoiceShape | ChoiceShape[] | null;
}

/** A question for a person, without whose answer the run does not go on. */
export interface Interrupt {
  id: string;
  reason: string;
  message?: string;
  toolCallId?: string;
  responseSchema?: Record<string, unknown>;
  expiresAt?: string;
  metadata?: Record<string, unknown>;
}

/** A key that was just made. It is shown only now; its hash is all that is kept. */
export interface Key {
  /** Its keyId. */
  keyId: string;
  key: string;
  workspace: string;
  user: string;
  role: "admin" | "user";
}

/** A key in a list, without the key itself. */
export interface KeyEntry {
  /** Its keyId. */
  keyId: string;
  workspace: string;
  user: string;
  role: "admin" | "user";
  createdAt: string;
  revokedAt?: string;
}

export interface KeyList {
  keys: KeyEntry[];
}

export interface KnowledgeQuery {
  query: string;
  topK?: number;
  filters?: Record<string, unknown> | null;
}

/** The amount that can be taken over. */
export interface LeftByDev {
  user: string;
  workspace: string;
  conversations: number;
  automations: number;
}

/** An MCP server that the runner's program may use directly. */
export interface McpEndpoint {
  name: string;
  transport?: "http" | "sse";
  url: string;
  headers?: Record<string, string>;
}

/** You, as this host knows you. */
export interface Me {
  userId: string;
  workspaceId: string;
  role: "admin" | "user";
  profile: Profile;
}

export interface MeChange {
  profile?: ProfileChange;
}

export interface MessagesSnapshotEvent {
  type: "MESSAGES_SNAPSHOT";
  messages: Record<string, unknown>[];
  metadata?: Record<string, unknown>;
}

export interface NewAttachToken {
  author: string;
  name: string;
  permissions?: Record<string, unknown>;
}

export interface NewAttachment {
  mimeType: string;
  size: number;
  filename?: string | null;
  sha256?: string | null;
}

export interface NewAutomation {
  name: string;
  prompt: string;
  cron?: string | null;
  rrule?: string | null;
  timeZone?: string | null;
  startsAt?: string | null;
  agentId?: string | null;
  missed?: "skip" | "run_once";
  enabled?: boolean;
  config?: ConfigShape;
}

export interface NewBase {
  kbId: string;
  name?: string;
  description?: string;
  embeddingModel?: string;
}

export interface NewDocument {
  name?: string;
  text?: string | null;
  contentBase64?: string | null;
  metadata?: Record<string, unknown> | null;
}

export interface NewKey {
  user: string;
  workspace?: string;
  role?: "admin" | "user";
}

export interface NewSession {
  threadId?: string | null;
  title?: string | null;
}

export interface OfferedBase {
  kbId: string;
  name: string;
}

export interface OfferedModel {
  modelId: string;
  type: string;
  provider: string;
  default: boolean;
}

export interface OfferedTool {
  name: string;
  type: string;
  description: string;
  readOnly: boolean;
}

/** Steps that have not ended: an agent joins, leaves or takes over, or the conversation opens or closes. */
export interface OpenTransaction {
  txId: string;
  kind: string;
  waiting: string;
  agentId: string | null;
  turnId: string | null;
  reason: string;
  summary: string;
  fromAgentId: string | null;
}

/** The opinion of a conversation's owner on an answer. */
export interface Opinion {
  rating: "down" | "up";
  comment: string;
}

export interface Outcome {
  type: "cancelled" | "interrupt" | "success";
  pendingToolCallIds?: string[];
  interrupts?: Interrupt[];
}

export interface PassageList {
  results: FoundPassage[];
}

export interface PersonUsage {
  userId: string;
  modelCalls: number;
  totalTokens: number;
  cost: number | null;
  unpricedCalls?: number;
}

/** A stretch of text, and whether it is what was looked for. */
export interface Piece {
  text: string;
  hit: boolean;
}

/** An event, with field names as in the runner protocol. */
export interface PlatformEvent {
  event_id: string;
  event_type: string;
  event_time?: number | null;
  source_event_type?: string | null;
  bot_id?: string | null;
  conversation_id?: string | null;
  thread_id?: string | null;
  actor?: ActorShape | null;
  subject?: SubjectShape | null;
  input?: InputShape;
  delivery?: DeliveryShape;
  data?: Record<string, unknown>;
}

export interface Profile {
  settings: Settings;
}

export interface ProfileChange {
  settings?: SettingsChange;
}

export interface Ready {
  status: string;
  reason: string;
}

export interface Reason {
  code: string;
  params: Record<string, string>;
}

export interface ReasoningMessage {
  role: "reasoning";
  id: string;
  content: string;
  encryptedValue?: string | null;
}

export interface Regenerate {
  itemId: string;
  runId?: string | null;
  agentId?: string | null;
}

/** All that agents of the workspace can be given; who may use what of it is each agent's. */
export interface Resources {
  models: OfferedModel[];
  tools: OfferedTool[];
  knowledgeBases: OfferedBase[];
}

export interface Run {
  taskId: string;
  threadId: string;
  runId: string;
  status: "cancelled" | "completed" | "failed" | "queued" | "running";
  createdAt: string;
  agentId?: string;
  code?: string;
  message?: string;
  /** The run that took this one's input in. */
  steeredInto?: string;
  startedAt?: string;
  endedAt?: string;
  deadlineAt?: string;
  usage?: Usage;
}

export interface RunAgentInput {
  threadId: string;
  runId: string;
  /** Exactly one user message, and it comes first. */
  messages: (UserMessage | AssistantMessage | SystemMessage | DeveloperMessage | ToolMessage | ReasoningMessage | ActivityMessage)[];
  forwardedProps: ForwardedProps;
  parentRunId?: string;
  state?: unknown;
  tools?: ClientTool[];
  context?: ClientContext[];
}

/** Runs, and how long they took. Times are left out where no run completed: nobody knows them. */
export interface RunCount {
  runs: number;
  completed: number;
  failed: number;
  cancelled: number;
  medianSeconds?: number;
  p95Seconds?: number;
}

export interface RunCountOfSpan {
  runs: number;
  completed: number;
  failed: number;
  cancelled: number;
  medianSeconds?: number;
  p95Seconds?: number;
  start: string;
}

/** A run, and whose it is. */
export interface RunEntry {
  taskId: string;
  threadId: string;
  runId: string;
  status: "cancelled" | "completed" | "failed" | "queued" | "running";
  createdAt: string;
  agentId?: string;
  code?: string;
  message?: string;
  /** The run that took this one's input in. */
  steeredInto?: string;
  startedAt?: string;
  endedAt?: string;
  deadlineAt?: string;
  usage?: Usage;
  userId: string;
  runnerId?: string;
}

export interface RunErrorEvent {
  type: "RUN_ERROR";
  message: string;
  code: string;
  /** In milliseconds. */
  timestamp?: number;
  metadata?: Record<string, unknown>;
}

export interface RunFinishedEvent {
  type: "RUN_FINISHED";
  threadId: string;
  runId: string;
  /** In milliseconds. */
  timestamp?: number;
  outcome?: Outcome;
  usage?: TokenUsage[];
  metadata?: Record<string, unknown>;
}

/** A run as AG-UI clients ask for it; read by `input.py`. */
export interface RunInput {
  threadId: string;
  runId: string;
  messages: Record<string, unknown>[];
  protocolVersion?: string | null;
  parentRunId?: string | null;
  state?: unknown;
  tools?: Record<string, unknown>[] | null;
  context?: Record<string, unknown>[] | null;
  forwardedProps?: unknown;
  resume?: Record<string, unknown>[] | null;
}

export interface RunList {
  runs: RunEntry[];
  next: string | null;
}

export interface RunStartedEvent {
  type: "RUN_STARTED";
  threadId: string;
  runId: string;
  /** In milliseconds. */
  timestamp?: number;
  protocolVersion?: string;
  parentRunId?: string;
  input?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
}

/** A runner. What went wrong inside, in its own words, is for whoever runs the host. */
export interface Runner {
  runnerId: string;
  plugin: string;
  state: "attached" | "ready" | "starting" | "stopped" | "unhealthy";
  isolation: string;
  manifest?: Record<string, unknown>;
  detail?: string;
  pid?: number;
  failing?: boolean;
  unhealthyFor?: string[];
}

export interface RunnerList {
  runners: Runner[];
}

export interface SaidByAgent {
  role: "assistant";
  id: string;
  taskId: string | null;
  seq: number;
  content: string;
  ui_schema: Record<string, unknown> | null;
  timestamp: string;
  agentId?: string;
  name?: string;
  /** Its run ended in the middle of it. */
  partial?: boolean;
  /** Its words were erased on purpose. */
  erased?: boolean;
  feedback?: Opinion;
}

export interface SaidByUser {
  role: "user";
  id: string;
  itemId: string;
  taskId: string | null;
  seq: number;
  content: string;
  attachments: HistoryFile[];
  timestamp: string;
  /** Its words were erased on purpose. */
  erased?: boolean;
}

/** A conversation at one moment. */
export interface Session {
  threadId: string;
  archived: boolean;
  closed: boolean;
  items: number;
  createdAt: string;
  updatedAt: string;
  title?: string;
  /** The job that talks in it. */
  automationId?: string;
  found?: Found;
  activeAgentId: string | null;
  agentsInSession: string[];
  speakingAgentId: string | null;
  userInterruptible: boolean;
  /** By turnId. */
  inflight: Record<string, InflightTurn>;
  /** By txId. */
  transactions: Record<string, OpenTransaction>;
  /** Where a reader starts that misses nothing from this moment on. */
  cursor: string;
  /** Where a reader starts that also wants all of the turns that have not ended. */
  inflightCursor: string;
}

export interface SessionChange {
  title?: string | null;
  archived?: boolean | null;
}

/** A conversation in a list. */
export interface SessionEntry {
  threadId: string;
  archived: boolean;
  closed: boolean;
  items: number;
  createdAt: string;
  updatedAt: string;
  title?: string;
  /** The job that talks in it. */
  automationId?: string;
  found?: Found;
}

/** One message of a conversation, as front ends are told it. */
export interface SessionEvent {
  session_id: string;
  event: string;
  subtype: string;
  sender: string;
  target: string | null;
  payload: unknown;
  metadata: Record<string, unknown>;
  time: number;
  id?: number;
  turn_id?: string | null;
  trace_id?: string | null;
  tx_id?: string | null;
}

export interface SessionList {
  sessions: SessionEntry[];
  next: number | null;
  complete?: boolean;
}

export interface SessionMessage {
  payload: string | Record<string, unknown>;
  mentioned_agent_id?: string | null;
  mentionedAgentId?: string | null;
  agent_id?: string | null;
  agentId?: string | null;
  runId?: string | null;
  metadata?: Record<string, unknown> | null;
}

export interface Settings {
  timezone: string | null;
  locale: string | null;
}

/** Null takes a setting back; one that is left out stays. */
export interface SettingsChange {
  timezone?: string | null;
  locale?: string | null;
}

/** A skill the runner may use; it may be given as its name alone. */
export interface Skill {
  name: string;
  display_name?: string | null;
  description?: string | null;
  /** The directory with its SKILL.md; agents file only. */
  path?: string | null;
}

export interface StepFinishedEvent {
  type: "STEP_FINISHED";
  stepName: string;
  metadata?: Record<string, unknown>;
}

export interface StepStartedEvent {
  type: "STEP_STARTED";
  stepName: string;
  metadata?: Record<string, unknown>;
}

export interface Story {
  run: RunEntry;
  grant: Record<string, unknown>;
  entries: StoryEntry[];
  truncated: boolean;
}

export interface StoryEntry {
  time: string;
  kind: "artifact" | "decision" | "event" | "model" | "process" | "state" | "tool";
  name: string;
  detail: Record<string, unknown>;
  result?: string;
  until?: string;
}

export interface SubjectShape {
  subject_type: string;
  subject_id?: string | null;
  data?: Record<string, unknown>;
}

export interface SystemMessage {
  role: "system";
  id: string;
  content: string;
  name?: string | null;
  encryptedValue?: string | null;
}

export interface TakeOver {
  user: string;
}

export interface TakenOver {
  conversations: number;
  busy: number;
  left: number;
}

export interface TextBlock {
  type: "text";
  text: string;
}

export interface TextMessageContentEvent {
  type: "TEXT_MESSAGE_CONTENT";
  messageId: string;
  delta: string;
  metadata?: Record<string, unknown>;
}

export interface TextMessageEndEvent {
  type: "TEXT_MESSAGE_END";
  messageId: string;
  metadata?: Record<string, unknown>;
}

export interface TextMessageStartEvent {
  type: "TEXT_MESSAGE_START";
  messageId: string;
  role: "assistant";
  metadata?: Record<string, unknown>;
}

export interface TokenUsage {
  provider?: string;
  model?: string;
  inputTokens?: number;
  outputTokens?: number;
  totalTokens?: number;
  reasoningTokens?: number;
  cachedInputTokens?: number;
  cacheWriteInputTokens?: number;
}

export interface ToolCallArgsEvent {
  type: "TOOL_CALL_ARGS";
  toolCallId: string;
  delta: string;
  metadata?: Record<string, unknown>;
}

export interface ToolCallEndEvent {
  type: "TOOL_CALL_END";
  toolCallId: string;
  metadata?: Record<string, unknown>;
}

export interface ToolCallResultEvent {
  type: "TOOL_CALL_RESULT";
  messageId: string;
  toolCallId: string;
  content: string;
  role: "tool";
  metadata?: Record<string, unknown>;
}

export interface ToolCallStartEvent {
  type: "TOOL_CALL_START";
  toolCallId: string;
  toolCallName: string;
  metadata?: Record<string, unknown>;
}

export interface ToolMessage {
  role: "tool";
  id: string;
  content: string;
  toolCallId: string;
  error?: string | null;
  encryptedValue?: string | null;
}

export interface UiAnswer {
  values?: Record<string, unknown>;
}

/** How to upload the bytes. */
export interface UploadAddress {
  expiresAt: string;
  method?: "PUT";
  url?: string;
  headers?: Record<string, string>;
}

/** Calls and tokens of a run's models. A cost of null: only models without a price were asked. */
export interface Usage {
  modelCalls: number;
  promptTokens: number;
  completionTokens: number;
  totalTokens: number;
  cost: number | null;
  unpricedCalls?: number;
}

/** The model calls of one agent with one model in one span of time. */
export interface UsageEntry {
  modelCalls: number;
  promptTokens: number;
  completionTokens: number;
  totalTokens: number;
  cost: number | null;
  unpricedCalls?: number;
  start: string;
  agentId: string;
  modelId: string;
}

export interface UsageReport {
  since: string;
  everySeconds: number;
  usage: UsageEntry[];
  runs: RunCountOfSpan[];
  total: RunCount;
  /** Of the workspace, for administrators. */
  people?: PersonUsage[];
}

export interface UserMessage {
  role: "user";
  id: string;
  content: string | (TextBlock | ImageBlock)[];
  name?: string;
  encryptedValue?: string;
}
