"""Platforms: events that came, conversations there, and what is delivered to them."""

from collections.abc import Mapping

from paddock.rules.rows import deliveries as rows
from paddock.storage.tables.statements import Change, HasEngine, Write, columns_of, in_turn, many, one, put, value

# ruff: noqa: S608 - the column lists are our own, values are always bound
_EVENT = columns_of(rows.PlatformEventRow)
WRITES: Mapping[type, Write] = {
    rows.PlatformEventRow: in_turn(
        Change(
            f"""
insert into platform_events ({_EVENT}) values (:{_EVENT.replace(", ", ", :")}) on conflict do nothing returning 1""",
            refused="this event was accepted already",
        )
    ),
    rows.PlatformConversationRow: in_turn(
        put(
            "platform_conversations",
            rows.PlatformConversationRow,
            key="session_id",
            again=("platform", "reply_target", "updated_at"),
        )
    ),
    rows.DeliveryRow: in_turn(put("deliveries", rows.DeliveryRow, key="delivery_id")),
    rows.DeliveryClaim: in_turn(
        Change("""
update deliveries set claim_token = :token, claimed_until = :until
 where delivery_id = :delivery_id and status = 'pending' and claimed_until <= :now and attempts = :attempts""")
    ),
    rows.DeliveryOutcome: in_turn(
        Change("""
update deliveries
   set status = :status, attempts = :attempts, due_at = :due_at, detail = :detail, ended_at = :ended_at,
       claimed_until = 0
 where delivery_id = :delivery_id and claim_token = :token and status = 'pending'""")
    ),
    rows.DeliveryAgain: in_turn(
        Change(
            """
update deliveries set status = 'pending', attempts = 0, due_at = :now, ended_at = null, claimed_until = 0
 where delivery_id = :delivery_id and status = 'dead' returning 1""",
            refused="only what was given up can be delivered again",
        )
    ),
}
_FIRST_OF_ITS_SESSION = """
not exists (
  select 1 from deliveries e where e.session_id = d.session_id and e.status = 'pending' and e.number < d.number)"""


class DeliveryReads(HasEngine):
    platform_event = one(
        rows.PlatformEventRow,
        "select {columns} from platform_events where platform = :platform and event_id = :event_id",
    )
    platform_conversation = one(
        rows.PlatformConversationRow, "select {columns} from platform_conversations where session_id = :session_id"
    )
    delivery = one(rows.DeliveryRow, "select {columns} from deliveries where delivery_id = :delivery_id")
    deliveries = many(
        rows.DeliveryRow,
        """
select {columns} from deliveries
 where workspace_id = :workspace_id and (:status::text is null or status = :status)
   and (:before::text is null or delivery_id < :before)
 order by delivery_id desc limit :limit""",
        status=None,
        before=None,
        limit=50,
    )
    due_deliveries = many(
        rows.DeliveryRow,
        f"""
select {{columns}} from (
  select {{columns}}, row_number() over (partition by workspace_id order by due_at, delivery_id) as turn
    from deliveries d
   where status = 'pending' and due_at <= :now and claimed_until <= :now and {_FIRST_OF_ITS_SESSION}) due
 order by turn, due_at, delivery_id limit :limit""",
        limit=100,
    )
    next_delivery_at = one(
        value,
        f"""
select min(greatest(due_at, claimed_until)) from deliveries d where status = 'pending' and {_FIRST_OF_ITS_SESSION}""",
    )
    delivery_claim = one(value, "select claim_token from deliveries where delivery_id = :delivery_id", otherwise="")
