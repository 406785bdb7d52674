-- The schema of a heddle store. The columns are the field lists of runtime/Core/KernelRecord.h (a test compares them), the keys
-- and, of every row, `checksum`: the SHA-256 of the fields. A store must have exactly these tables, as they are spelled here;
-- a change of this file, also of its blanks, goes with kStoreVersion of Schema.h.
CREATE TABLE kernels (
  content_key TEXT PRIMARY KEY NOT NULL,
  pattern TEXT NOT NULL,
  kind TEXT NOT NULL,
  dtype TEXT NOT NULL,
  head_dim INTEGER NOT NULL,
  value_dim INTEGER NOT NULL,
  generator TEXT NOT NULL,
  kernel_arch TEXT NOT NULL,
  min_driver INTEGER NOT NULL,
  needs_checksum TEXT NOT NULL, -- SHA-256 of content_key, kernel_arch, min_driver, which lookups read of kernels that they pass by
  config TEXT NOT NULL,
  plan TEXT NOT NULL,
  cubin BLOB NOT NULL,
  ptx TEXT NOT NULL,
  registers INTEGER NOT NULL,
  spill_bytes INTEGER NOT NULL,
  shared_bytes INTEGER NOT NULL,
  compile_log TEXT NOT NULL,
  nvrtc_version TEXT NOT NULL,
  note TEXT NOT NULL,
  checksum TEXT NOT NULL
) STRICT;

CREATE TABLE winners (
  winner_key TEXT PRIMARY KEY NOT NULL, -- digest of the columns of the key
  pattern TEXT NOT NULL,
  kind TEXT NOT NULL,
  dtype TEXT NOT NULL,
  head_dim INTEGER NOT NULL,
  value_dim INTEGER NOT NULL,
  generator TEXT NOT NULL,
  work_per_sm INTEGER NOT NULL,
  tiles_per_row INTEGER NOT NULL,
  gqa_ratio INTEGER NOT NULL,
  query_rows INTEGER NOT NULL,
  batch INTEGER NOT NULL,
  heads INTEGER NOT NULL,
  kv_heads INTEGER NOT NULL,
  seqlen_q INTEGER NOT NULL,
  seqlen_k INTEGER NOT NULL,
  q_origin INTEGER NOT NULL,
  k_origin INTEGER NOT NULL,
  arguments TEXT NOT NULL,
  device_name TEXT NOT NULL,
  arch TEXT NOT NULL,
  sm_count INTEGER NOT NULL,
  memory_gib INTEGER NOT NULL,
  content_key TEXT NOT NULL REFERENCES kernels (content_key) ON DELETE CASCADE,
  is_tuned INTEGER NOT NULL,
  median_us REAL NOT NULL,
  driver_version INTEGER NOT NULL,
  created_unix INTEGER NOT NULL,
  checksum TEXT NOT NULL
) STRICT;
CREATE INDEX winners_by_family ON winners (pattern, kind, dtype, head_dim, value_dim);
CREATE INDEX winners_by_kernel ON winners (content_key);

CREATE TABLE trials (
  session_key TEXT NOT NULL,            -- digest of the columns of the winner key
  pattern TEXT NOT NULL,
  kind TEXT NOT NULL,
  dtype TEXT NOT NULL,
  head_dim INTEGER NOT NULL,
  value_dim INTEGER NOT NULL,
  generator TEXT NOT NULL,
  work_per_sm INTEGER NOT NULL,
  tiles_per_row INTEGER NOT NULL,
  gqa_ratio INTEGER NOT NULL,
  query_rows INTEGER NOT NULL,
  batch INTEGER NOT NULL,
  heads INTEGER NOT NULL,
  kv_heads INTEGER NOT NULL,
  seqlen_q INTEGER NOT NULL,
  seqlen_k INTEGER NOT NULL,
  q_origin INTEGER NOT NULL,
  k_origin INTEGER NOT NULL,
  arguments TEXT NOT NULL,
  device_name TEXT NOT NULL,
  arch TEXT NOT NULL,
  sm_count INTEGER NOT NULL,
  memory_gib INTEGER NOT NULL,
  config_digest TEXT NOT NULL,
  config TEXT NOT NULL,
  outcome TEXT NOT NULL,
  median_us REAL NOT NULL,
  min_us REAL NOT NULL,
  max_error REAL NOT NULL,
  message TEXT NOT NULL,
  registers INTEGER NOT NULL,
  spill_bytes INTEGER NOT NULL,
  compile_seconds REAL NOT NULL,
  driver_version INTEGER NOT NULL,
  created_unix INTEGER NOT NULL,
  sm_clock_mhz INTEGER NOT NULL,
  power_watts REAL NOT NULL,
  checksum TEXT NOT NULL,
  PRIMARY KEY (session_key, config_digest)
) STRICT;

CREATE TABLE devices (
  device_key TEXT PRIMARY KEY NOT NULL, -- digest of the first four columns
  device_name TEXT NOT NULL,
  arch TEXT NOT NULL,
  sm_count INTEGER NOT NULL,
  memory_gib INTEGER NOT NULL,
  driver_version INTEGER NOT NULL,
  l2_bytes INTEGER NOT NULL,
  created_unix INTEGER NOT NULL,
  checksum TEXT NOT NULL
) STRICT;

CREATE TABLE links (
  link_key TEXT PRIMARY KEY NOT NULL, -- digest of the first three columns
  device_name TEXT NOT NULL,
  ranks INTEGER NOT NULL,
  hosts INTEGER NOT NULL,
  gbps REAL NOT NULL,
  latency_us REAL NOT NULL,
  messages TEXT NOT NULL,
  nccl TEXT NOT NULL,
  created_unix INTEGER NOT NULL,
  checksum TEXT NOT NULL
) STRICT;

CREATE TABLE names (
  name TEXT PRIMARY KEY NOT NULL,
  pattern TEXT NOT NULL,
  parameters TEXT NOT NULL,
  created_unix INTEGER NOT NULL,
  checksum TEXT NOT NULL
) STRICT;
