/* Causal attention within a window, bf16, by the definition: the kernel of packages that are made for the recording
 * driver (HostKernel.h). Its parameters are those of host_package.cpp. */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { kHeadDim = 64 };

struct params {
  const uint16_t *q, *k, *v;
  uint16_t *out;
  float *lse;
  int64_t q_stride[3], k_stride[3], v_stride[3], out_stride[3]; /* batch, row, head */
  int32_t batch, heads, kv_heads, seqlen_q, seqlen_k, q_origin, k_origin;
  float scale_log2;
  int32_t left; /* keys before the query */
  const float *carry_out, *carry_lse;
};

static float from_bf16(uint16_t bits) {
  const uint32_t word = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

static uint16_t to_bf16(float value) { /* finite; to nearest, ties to even */
  uint32_t word;
  memcpy(&word, &value, sizeof word);
  return (uint16_t)((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

static int64_t at(const int64_t stride[3], int batch, int row, int head) { return batch * stride[0] + row * stride[1] + head * stride[2]; }

static void add_key(float weights[kHeadDim], float *sum, float weight, const uint16_t *v) {
  int d;
  *sum += weight;
  for (d = 0; d < kHeadDim; ++d)
    weights[d] += weight * from_bf16(v[d]);
}

static float score(const struct params *p, const uint16_t *q, const uint16_t *k) {
  float dot = 0;
  int d;
  for (d = 0; d < kHeadDim; ++d)
    dot += from_bf16(q[d]) * from_bf16(k[d]);
  return dot * p->scale_log2;
}

/* The carry is one key with score lse and value out, as far as a softmax can tell. */
static void add_carry(const struct params *p, int64_t row_of_out, float weights[kHeadDim], float *sum, float weight) {
  int d;
  *sum += weight;
  for (d = 0; d < kHeadDim; ++d)
    weights[d] += weight * p->carry_out[row_of_out * kHeadDim + d];
}

static void compute_row(const struct params *p, int batch, int head, int row) {
  const int kv_head = head / (p->heads / p->kv_heads);
  const int64_t position = (int64_t)p->q_origin + row;
  const uint16_t *q = p->q + at(p->q_stride, batch, row, head);
  uint16_t *out = p->out + at(p->out_stride, batch, row, head);
  const int64_t row_of_lse = ((int64_t)batch * p->heads + head) * p->seqlen_q + row;
  const float carried = p->carry_lse ? p->carry_lse[row_of_lse] * 1.44269504f : -INFINITY;
  float sums[kHeadDim] = {0}, total = 0, highest = carried;
  int64_t first = position - p->left - p->k_origin, last = position - p->k_origin;
  int key, d;
  if (first < 0)
    first = 0;
  if (last >= p->seqlen_k)
    last = p->seqlen_k - 1;
  for (key = (int)first; key <= last; ++key)
    highest = fmaxf(highest, score(p, q, p->k + at(p->k_stride, batch, key, kv_head)));
  for (key = (int)first; key <= last; ++key)
    add_key(sums, &total, exp2f(score(p, q, p->k + at(p->k_stride, batch, key, kv_head)) - highest),
            p->v + at(p->v_stride, batch, key, kv_head));
  if (carried > -INFINITY)
    add_carry(p, ((int64_t)batch * p->seqlen_q + row) * p->heads + head, sums, &total, exp2f(carried - highest));
  for (d = 0; d < kHeadDim; ++d)
    out[d] = to_bf16(total > 0 ? sums[d] / total : 0);
  p->lse[row_of_lse] = total > 0 ? (highest + log2f(total)) * 0.69314718f : -INFINITY;
}

void heddle_kernel(const void *params, const unsigned *grid);
void heddle_kernel(const void *params, const unsigned *grid) {
  struct params p;
  int batch, head, row;
  (void)grid;
  memcpy(&p, params, sizeof p);
  for (batch = 0; batch < p.batch; ++batch)
    for (head = 0; head < p.heads; ++head)
      for (row = 0; row < p.seqlen_q; ++row)
        compute_row(&p, batch, head, row);
}
