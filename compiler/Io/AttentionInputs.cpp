#include "compiler/Io/AttentionInputs.h"
#include "compiler/Io/Memory.h"
#include "compiler/Io/RandomTensor.h"
#include "compiler/Io/Safetensors.h"
#include "compiler/Io/SequenceTensors.h"
#include "compiler/Io/WholeScale.h"
#include "runtime/Core/CallChecks.h"
#include "runtime/Core/SequenceChecks.h"

#include <algorithm>

namespace heddle {

std::vector<RoleSpec> rolesOf(const Kind &kind, Access access) {
  std::vector<RoleSpec> roles;
  for (const KindRole &role : kind.roles())
    if (includes(role.access, access) && role.presence == Presence::required)
      roles.push_back(specOf(role));
  return roles;
}

std::string shapeWords(const RoleSpec &role) {
  std::string text;
  for (RoleExtent extent : extentsOf(role))
    text += (text.empty() ? "[" : ", ") + launchSymbolName(symbolOf(extent));
  return text + "]";
}

HostTensor &RoleTensors::of(Role role) {
  HostTensor *const all[] = {
#define HEDDLE_ROLE_ADDRESS(identifier, ...) &identifier,
      HEDDLE_ROLES(HEDDLE_ROLE_ADDRESS)
#undef HEDDLE_ROLE_ADDRESS
  };
  return *all[int(role)];
}

RoleTensors emptyResultsOf(const std::vector<RoleSpec> &written, const AttentionSizes &sizes,
                           const CallElements &elements) {
  RoleTensors results;
  for (const RoleSpec &role : written)
    results.of(role.role) = HostTensor::zeros(elements.of(role.element), sizes.shapeOf(role));
  return results;
}

RoleTensors resultsBefore(const AttentionInputs &inputs, DType outDType) {
  RoleTensors results = emptyResultsOf(inputs.written(), inputs.sizes, inputs.elements(outDType));
  for (const RoleSpec &role : rolesOf(inputs.kind, Access::both))
    results.of(role.role) = inputs.of(role.role);
  return results;
}

CallElements AttentionInputs::elements(std::optional<DType> outDType) const {
  const CallElements alike(dtype(), outDType.value_or(this->outDType()));
  const CallElements given = alike.withKeys(isGiven(Role::k) ? k.dtype : dtype());
  return (given.hasScaledKeys() ? given : alike).withScaleRows(scaleRows);
}

void AttentionInputs::setScaleRows(int64_t rows) {
  scaleRows = rows;
  sizes = sizes.inBlocksOf(elements());
}

std::vector<RoleSpec> AttentionInputs::given() const {
  std::vector<RoleSpec> roles;
  for (const KindRole &role : kind.roles())
    if (includes(role.access, Access::read) && isGiven(role.role))
      roles.push_back(specOf(role));
  return roles;
}

std::vector<RoleSpec> AttentionInputs::written() const {
  std::vector<RoleSpec> roles;
  for (const KindRole &role : kind.roles())
    if (includes(role.access, Access::write) && (role.presence == Presence::required || isGiven(role.role)))
      roles.push_back(specOf(role));
  return roles;
}

std::string describe(const char *name, const HostTensor &tensor) {
  return std::string("tensor '") + name + "' is " + dtypeName(tensor.dtype) + " " + shapeText(tensor.shape);
}

static Status checkRank(const RoleSpec &role, const HostTensor &tensor) {
  if (mayHaveRank(role, tensor.shape.size()))
    return {};
  return Status::invalidArgument(describe(role.name, tensor) + "; expected " + shapeWords(role));
}

float AttentionInputs::descaleOf(Role role, int64_t batch, int64_t head, int64_t row) const {
  const Role scale = role == Role::q ? Role::descaleQ : role == Role::k ? Role::descaleK : Role::descaleV;
  if (!isGiven(scale))
    return 1.0f;
  const bool hasBlocks = scaleRows > 0 && role != Role::v;
  const int64_t blocks = hasBlocks ? sizes.of(specOf(scale).rows) : 1, block = hasBlocks ? row / scaleRows : 0;
  return float(of(scale).get((batch * sizes.of(specOf(role).heads) + head) * blocks + block));
}

// The tensors that a file has of a call are dense and so many; arrays are looked at here alone.
class FileChecks {
public:
  explicit FileChecks(const AttentionInputs &inputs) : sizes(symbols), rules(inputs.kind) {
    rules.elements = inputs.elements();
  }

  Status check(const RoleSpec &role, const HostTensor &tensor, const std::vector<int64_t> &shape) {
    HEDDLE_TRY(checkDtype(role, traitsOf(tensor.dtype).code, rules));
    if (const DType expected = rules.elements.of(role.element); tensor.dtype != expected) // integers have one code
      return Status::invalidArgument(describe(role.name, tensor) + "; expected " + dtypeName(expected));
    if (role.form == RoleForm::tensor)
      return sizes.check(role, {tensor.shape[0], tensor.shape[1], tensor.shape[2], tensor.shape[3]});
    if (tensor.shape != shape)
      return Status::invalidArgument(describe(role.name, tensor) + "; expected " + shapeText(shape));
    if (rules.kind->find(role.role)->presence == Presence::scale)
      if (const RoleSpec &of = specOf(scaledBy(role.role)); !traitsOf(rules.elements.of(of.element)).isScaled())
        return Status::invalidArgument(describe(role.name, tensor) + ", beside " + of.name + " of " +
                                       dtypeName(rules.elements.of(of.element)) + ", which has no scales");
    return checkNumbers(*rules.kind->find(role.role), tensor.data.data(), tensor.elements());
  }

  Status checkHeads() const { return heddle::checkHeads(*rules.kind, symbols); }

private:
  LaunchSymbols symbols;
  CallSizes sizes;
  CallRules rules;
};

// Those that must be there, or are.
static std::vector<RoleSpec> rolesToCheck(const AttentionInputs &inputs) {
  std::vector<RoleSpec> roles;
  for (const KindRole &role : inputs.kind.roles())
    if (includes(role.access, Access::read) &&
        (inputs.isGiven(role.role) ||
         (role.presence == Presence::required && !inputs.kind.takesFromForward(role.role))))
      roles.push_back(specOf(role));
  return roles;
}

// Whether the sizes are such that bytes of all tensors of a call can be counted, also of those that nobody gave: where
// one size is 0, files of few bytes have others that no memory holds.
static Status checkCounts(const AttentionSizes &sizes, const Kind &kind) {
  constexpr int64_t kMostSize = int64_t(1) << 31, kMostElements = int64_t(1) << 40;
  for (const SizeSpec &each : kSizes)
    if (const int64_t size = sizes.of(each.size); size < 0 || size > kMostSize)
      return Status::invalidArgument("size " + std::to_string(size) + " is not in [0, 2^31]");
  for (const KindRole &role : kind.roles()) {
    const RoleSpec spec = specOf(role);
    if (const auto elements = elementsOf(sizes.shapeOf(spec)); !elements || *elements > kMostElements)
      return Status::invalidArgument(std::string("tensor '") + spec.name + "' " + shapeText(sizes.shapeOf(spec)) +
                                     " has more than 2^40 elements");
  }
  return {};
}

static PageSizes pageSizesOf(const AttentionSizes &sizes) {
  return {sizes.sequences, sizes.pages, sizes.pageSize, sizes.maxPages, sizes.tables};
}

static Status checkTablesOf(const heddle_attention_args &args) {
  const char *first = args.page_table ? "page_table" : "kv_indptr",
             *second = args.cu_seqlens_k ? "cu_seqlens_k" : "kv_indptr";
  if (bool(args.page_table) + bool(args.cu_seqlens_k) + bool(args.kv_indptr) > 1)
    return Status::invalidArgument(std::string("expected a tensor '") + first + "' or '" + second + "', not both");
  if (args.kv_indptr && !(args.kv_indices && args.kv_last_page_len))
    return Status::invalidArgument("expected tensors 'kv_indices' and 'kv_last_page_len' beside 'kv_indptr'");
  return {};
}

// Sequences as calls in host memory have them. The most keys of one count as the length of keys.
static Status checkSequencesOf(AttentionInputs &inputs) {
  AttentionSizes &sizes = inputs.sizes;
  if (!inputs.kind.hasPages())
    return {};
  heddle_attention_args args = {};
  const auto integersOf = [&inputs](Role role) {
    return inputs.isGiven(role) ? reinterpret_cast<const int32_t *>(inputs.of(role).data.data()) : nullptr;
  };
  args.page_table = integersOf(Role::pageTable), args.seqused_k = integersOf(Role::sequsedK);
  args.cu_seqlens_q = integersOf(Role::cuSeqlensQ), args.cu_seqlens_k = integersOf(Role::cuSeqlensK);
  args.kv_indptr = integersOf(Role::kvIndptr), args.kv_indices = integersOf(Role::kvIndices);
  args.kv_last_page_len = integersOf(Role::kvLastPageLen), args.shared_k = integersOf(Role::sharedK);
  args.k_origins = integersOf(Role::kOrigins), args.whole_k = integersOf(Role::wholeK);
  giveSizes(inputs.kind, [&sizes](RoleExtent size) { return sizes.of(size); }, args);
  LaunchSymbols symbols;
  for (const SizeSpec &size : kSizes)
    symbols[symbolOf(size.size)] = sizes.of(size.size);
  HEDDLE_TRY(checkTablesOf(args));
  HEDDLE_TRY(checkSequences(inputs.kind.roles(), args, symbols));
  HEDDLE_TRY(checkSequenceValues(inputs.kind.roles(), args, symbols));
  sizes.seqlenK = symbols[LaunchSymbol::seqlenK];
  if (args.kv_indptr)
    return checkChainedTables(pageSizesOf(sizes), inputs.kvIndptr, inputs.kvIndices);
  return args.page_table ? checkPageTable(pageSizesOf(sizes), inputs.pageTable, inputs.sequsedK) : Status();
}

// What the shapes of scales say of the rows that share one: those of a head, or the fewest of kScaleRows that fit them.
static Status learnScaleRows(AttentionInputs &inputs) {
  const AttentionSizes given = inputs.sizes;
  const bool isOfQ = inputs.isGiven(Role::descaleQ), isOfK = inputs.isGiven(Role::descaleK);
  const auto fits = [&](int64_t rows) {
    const AttentionSizes sizes = given.inBlocksOf(CallElements().withScaleRows(rows));
    return (!isOfQ || sizes.qBlocks == given.qBlocks) && (!isOfK || sizes.kBlocks == given.kBlocks);
  };
  if (fits(0))
    return {};
  for (int64_t rows : kScaleRows)
    if (fits(rows)) {
      inputs.setScaleRows(rows);
      return checkScaleRows(inputs.kind, inputs.elements());
    }
  const auto textOf = [&](Role role) {
    return inputs.isGiven(role) ? describe(specOf(role).name, inputs.of(role)) + "; " : std::string();
  };
  return Status::invalidArgument(textOf(Role::descaleQ) + textOf(Role::descaleK) + "beside " +
                                 std::to_string(given.seqlenQ) + " rows of q and " + std::to_string(given.seqlenK) +
                                 " of k expected scales of heads, or of blocks of 64 rows or of 128, of both alike");
}

Result<AttentionInputs> makeAttentionInputs(RoleTensors tensors, const Kind &kind) {
  AttentionInputs inputs{std::move(tensors), {}, kind};
  const std::vector<RoleSpec> roles = rolesToCheck(inputs);
  for (const RoleSpec &role : roles)
    HEDDLE_TRY(checkRank(role, inputs.of(role.role)));
  SizesOfTensors given;
  FileChecks checks(inputs);
  for (const RoleSpec &role : roles) {
    const HostTensor &tensor = inputs.of(role.role);
    HEDDLE_TRY(checks.check(role, tensor, given.expected(role, tensor.shape)));
  }
  inputs.sizes = given.sizes;
  for (const RoleSpec &role : roles)
    if ((role.heads != RoleExtent::one && inputs.sizes.of(role.heads) < 1) ||
        (role.dim != RoleExtent::one && inputs.sizes.of(role.dim) < 1))
      return Status::invalidArgument(describe(role.name, inputs.of(role.role)) +
                                     "; expected at least one head and one head dimension");
  HEDDLE_TRY(checks.checkHeads());
  HEDDLE_TRY(checkSequencesOf(inputs));
  HEDDLE_TRY(learnScaleRows(inputs));
  HEDDLE_TRY(checkCounts(inputs.sizes, kind));
  return inputs;
}

Result<AttentionInputs> readAttentionInputs(const std::string &path, const Kind &kind) {
  HEDDLE_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
  RoleTensors tensors;
  for (const KindRole &role : kind.roles()) {
    const char *name = specOf(role.role).name;
    const bool mayLack = role.presence != Presence::required || kind.takesFromForward(role.role);
    if (!includes(role.access, Access::read) || (mayLack && file.entries().count(name) == 0))
      continue;
    const bool isOfIntegers = specOf(role).element == RoleElement::i32;
    HEDDLE_ASSIGN(tensors.of(role.role),
                  file.read(name, isOfIntegers ? &ElementTraits::isKnown : &ElementTraits::isOfCalls));
    HEDDLE_TRY(spreadScale(role, tensors));
  }
  Result<AttentionInputs> inputs = makeAttentionInputs(std::move(tensors), kind);
  if (!inputs.isOk())
    return Status(inputs.status().code(), "tensor file '" + path + "': " + inputs.status().message());
  return inputs;
}

// From 1/2 to 1, in steps of 1/512.
static void addScales(RoleTensors &tensors, const AttentionSizes &sizes, const CallElements &elements, uint64_t seed,
                      const Kind &kind) {
  for (const KindRole &role : kind.roles()) {
    if (role.presence != Presence::scale || !traitsOf(elements.of(specOf(scaledBy(role.role)).element)).isScaled())
      continue;
    const RoleSpec spec = specOf(role);
    const RandomStream stream(seed, spec.name);
    HostTensor &scales = tensors.of(role.role) = HostTensor::zeros(kAccumulator, sizes.shapeOf(spec));
    for (int64_t i = 0; i < scales.elements(); ++i)
      scales.set(i, 0.5f + float(stream.word(uint64_t(i)) % 256) / 512);
  }
}

// Where keys lie, unless `also` says that it is in ragged rows, in pages.
static bool isMade(const KindRole &role, const Kind &kind, const std::vector<Role> &also) {
  const auto isAlso = [&also](Role wanted) { return std::find(also.begin(), also.end(), wanted) != also.end(); };
  if (!includes(role.access, Access::read) || kind.takesFromForward(role.role) || role.role == Role::kvIndptr)
    return false;
  return role.presence == Presence::required || isAlso(role.role) ||
         (kind.hasPages() &&
          (role.role == Role::sequsedK || (role.role == Role::pageTable && !isAlso(Role::cuSeqlensK))));
}

static HostTensor randomTensor(const RoleSpec &role, const AttentionSizes &sizes, const CallElements &elements,
                               uint64_t seed, const std::function<void(double)> &show) {
  if (role.role == Role::pageTable)
    return randomPageTable(pageSizesOf(sizes), seed);
  if (role.role == Role::sequsedK)
    return randomLengths(pageSizesOf(sizes), seed);
  if (role.role == Role::cuSeqlensK)
    return evenOffsets(sizes.sequences, sizes.pageSize);
  if (role.element == RoleElement::i32)
    return HostTensor::zeros(DType::i32, sizes.shapeOf(role));
  if (role.element == RoleElement::sign)
    return randomSigns(sizes.shapeOf(role), seed, role.name);
  return randomNormalTensor(elements.of(role.element), sizes.shapeOf(role), seed, role.name, show);
}

// What follows from tables and lengths.
static void finishTables(RoleTensors &tensors, const PageSizes &sizes, const RandomInputs &random) {
  if (tensors.isGiven(Role::sharedK))
    tensors.sharedK = shareFirstPages(sizes, tensors.pageTable, tensors.sequsedK);
  if (std::find(random.also.begin(), random.also.end(), Role::kvIndptr) == random.also.end())
    return;
  ChainedTables chain = chained(sizes, tensors.pageTable, tensors.sequsedK);
  tensors.kvIndptr = std::move(chain.offsets), tensors.kvIndices = std::move(chain.entries);
  tensors.kvLastPageLen = std::move(chain.lastLengths);
  tensors.pageTable = {}, tensors.sequsedK = {};
}

Result<AttentionInputs> randomAttentionInputs(const AttentionSizes &asked, DType dtype, uint64_t seed, const Kind &kind,
                                              const RandomInputs &random) {
  const CallElements elements =
      CallElements(dtype).withKeys(random.keys.value_or(dtype)).withScaleRows(random.scaleRows);
  AttentionSizes sizes = asked.inBlocksOf(elements);
  sizes.sequences = sizes.batch;
  if (const Status counted = checkCounts(sizes, kind); !counted.isOk())
    return Status(counted.code(), "random inputs: " + counted.message());
  double all = 0;
  std::string names;
  std::vector<RoleSpec> roles;
  for (const KindRole &role : kind.roles())
    if (isMade(role, kind, random.also))
      roles.push_back(specOf(role));
  for (const RoleSpec &role : roles) {
    all += double(elementsOf(sizes.shapeOf(role)).value());
    names += (names.empty() ? "" : role.role == roles.back().role ? " and " : ", ") + std::string(role.name);
  }
  HEDDLE_TRY(checkMemory("random inputs: " + names, all * dtypeBytes(dtype),
                         "choose a smaller batch, length, number of heads or head dim"));
  RoleTensors tensors;
  double made = 0;
  for (const RoleSpec &role : roles) {
    const double own = double(elementsOf(sizes.shapeOf(role)).value());
    auto show = [&](double share) {
      if (random.progress && all > 0)
        random.progress((made + share * own) / all);
    };
    tensors.of(role.role) = randomTensor(role, sizes, elements, seed, show);
    made += own;
  }
  addScales(tensors, sizes, elements, seed, kind);
  finishTables(tensors, pageSizesOf(sizes), random);
  HEDDLE_ASSIGN(AttentionInputs inputs, makeAttentionInputs(std::move(tensors), kind));
  if (random.scaleRows) {
    HEDDLE_TRY(checkScaleRows(kind, elements));
    inputs.setScaleRows(random.scaleRows);
  }
  return inputs;
}

std::vector<RoleSpec> missingOfForward(const AttentionInputs &inputs) {
  std::vector<RoleSpec> missing;
  for (const RoleSpec &role : rolesOf(inputs.kind, Access::read))
    if (inputs.kind.takesFromForward(role.role) && !inputs.isGiven(role.role))
      missing.push_back(role);
  return missing;
}

Status addFromForward(AttentionInputs &inputs,
                      const std::function<Result<RoleTensors>(const AttentionInputs &inputs)> &forward) {
  const std::vector<RoleSpec> missing = missingOfForward(inputs);
  if (missing.empty())
    return {};
  const Kind kind = std::exchange(inputs.kind, Kind());
  Result<RoleTensors> results = forward(inputs);
  inputs.kind = kind;
  HEDDLE_TRY(results.status());
  for (const RoleSpec &role : missing)
    inputs.of(role.role) = std::move(results->of(role.role));
  return {};
}

static std::map<std::string, const HostTensor *> named(const RoleTensors &tensors, const std::vector<RoleSpec> &roles) {
  std::map<std::string, const HostTensor *> result;
  for (const RoleSpec &role : roles)
    result[role.name] = &tensors.of(role.role);
  return result;
}

Status writeAttentionInputs(const std::string &path, const AttentionInputs &inputs, uint64_t seed,
                            const std::map<std::string, OperandTensor> &operands) {
  return writeSafetensors(path, named(inputs, inputs.given()),
                          {{"generator", "heddle normal12"}, {"seed", std::to_string(seed)}}, operands);
}

Status writeAttentionOutputs(const std::string &path, const RoleTensors &results, const Kind &kind,
                             const std::map<std::string, const HostTensor *> &argumentGradients) {
  std::map<std::string, const HostTensor *> tensors = named(results, rolesOf(kind, Access::write));
  tensors.insert(argumentGradients.begin(), argumentGradients.end());
  return writeSafetensors(path, tensors);
}

} // namespace heddle
