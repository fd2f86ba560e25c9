"""What became of a batch when the answer to its append was lost: the end of the log tells."""

from paddock.ports import Batch
from paddock.rules.errors import StaleOwnerError
from paddock.rules.log.chain import Head


def is_taken(batch: Batch, epoch: int, head: Head) -> bool:
    """Whether a log that ends here, written last or claimed under this epoch, ends with the batch or just before it.

    Only its owner writes under an epoch, so that its own number and digest at the end are its own doing. Raises
    StaleOwnerError when it is neither.
    """
    if epoch == batch.epoch and head == batch.after:
        return True
    if epoch <= batch.epoch and head == batch.before:
        return False
    raise StaleOwnerError(f"session {batch.session_id} has another owner")
