// Error codes in responses to Kafka clients: which are faults of the cluster, and which belong to normal operation.

const FAULTS = new Set([
  "UNKNOWN_SERVER_ERROR",
  "CORRUPT_MESSAGE",
  "KAFKA_STORAGE_ERROR",
  "LOG_DIR_NOT_FOUND",
  "NOT_ENOUGH_REPLICAS",
  "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
  "BROKER_NOT_AVAILABLE",
  "REQUEST_TIMED_OUT",
]);

// Steps of a protocol, and look-ups of what does not exist.
const ORDINARY = new Set([
  "COORDINATOR_LOAD_IN_PROGRESS",
  "FETCH_SESSION_ID_NOT_FOUND",
  "GROUP_ID_NOT_FOUND",
  "ILLEGAL_GENERATION",
  "INVALID_FETCH_SESSION_EPOCH",
  "INVALID_SHARE_SESSION_EPOCH",
  "LEADER_NOT_AVAILABLE",
  "MEMBER_ID_REQUIRED",
  "NOT_COORDINATOR",
  "NOT_LEADER_OR_FOLLOWER",
  "REBALANCE_IN_PROGRESS",
  "RESOURCE_NOT_FOUND",
  "SHARE_SESSION_NOT_FOUND",
  "STALE_MEMBER_EPOCH",
  "TOPIC_ALREADY_EXISTS",
  "TRANSACTIONAL_ID_NOT_FOUND",
  "UNKNOWN_MEMBER_ID",
  "UNKNOWN_TOPIC_ID",
  "UNKNOWN_TOPIC_OR_PARTITION",
  "UNSUPPORTED_VERSION",
]);

export const isFault = ({ error }) => FAULTS.has(error);
export const isOrdinary = ({ error }) => ORDINARY.has(error);
