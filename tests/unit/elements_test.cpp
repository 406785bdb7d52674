//===- elements_test.cpp - every element, through whatever reads its row ----===//
// Walks the table of runtime/Core/DType.h: what a row says is what each consumer writes, and what it writes is read back
// as the same element.
#include "support/Places.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/TraitsPrinter.h"
#include "compiler/Io/Safetensors.h"
#include "dialect/IR/Operands.h"
#include "runtime/Core/ElementConvert.h"
#include "runtime/Core/Tables.h"
#include "store_fixture.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr ElementName kNames[] = {&ElementTraits::name, &ElementTraits::mlirName, &ElementTraits::fileName,
                                  &ElementTraits::torchName};

/// Of a number that was stored.
template <class Number> Number throughMemory(DType dtype, Number value) {
  std::byte memory[2 * sizeof(int64_t)] = {};
  storeElements(dtype, &value, 1, memory, 1);
  return loadElement<Number>(dtype, memory, 1);
}

} // namespace

TEST_CASE("names and numbers lead back to their element alone") {
  for (const ElementTraits &element : kElements) {
    CAPTURE(element.name);
    CHECK(&traitsOf(element.dtype) == &element);
    for (ElementName column : kNames)
      CHECK(findElement(column, element.*column) == element.dtype);
    CHECK(parseDType(dtypeName(element.dtype)) == (element.isOfCalls() ? std::optional(element.dtype) : std::nullopt));
    CHECK(dtypeOfCode(element.code) == (element.isOfCalls() ? std::optional(element.dtype) : std::nullopt));
  }
  for (const char *other : {"", "fp8", "BF16 ", "float"})
    for (ElementName column : kNames)
      CHECK(!findElement(column, other));
  CHECK(!dtypeOfCode(-1));
  CHECK(!dtypeOfCode(int32_t(std::size(kElements)) + 1));
}

TEST_CASE("lists of elements are those of the table, and refusals name them with their numbers") {
  CHECK(elementList(&ElementTraits::isOfCalls) == "bf16, fp16, fp32 or e4m3");
  CHECK(elementList(&ElementTraits::isPacked, &ElementTraits::name, "and") == "bf16 and fp16");
  CHECK(elementList(&ElementTraits::isKnown, &ElementTraits::mlirName) == "bf16, f16, f32, f8E4M3FN, i32 or i64");
  CHECK(elementNames(&ElementTraits::isComputed) == std::vector<std::string>{"bf16", "fp16", "fp32", "e4m3"});
  CHECK(elementNames(&ElementTraits::isOfWarps) == std::vector<std::string>{"bf16", "fp16", "fp32"});
  CHECK(elementNames(&ElementTraits::isOfWarpgroups) == std::vector<std::string>{"bf16", "fp16", "e4m3"});
  CHECK(expectedElement(&ElementTraits::isPacked, 7) == "dtype: expected bf16 (1) or fp16 (2), got 7");
}

TEST_CASE("reals: the range and the steps of the table are those of the bits") {
  for (const ElementTraits &element : kElements) {
    if (!element.isReal())
      continue;
    CAPTURE(element.name);
    const auto stored = [&](double value) { return roundedTo(element.dtype, float(value)); };
    const double step = std::ldexp(1.0, 1 - element.significandBits);
    for (double value : {0.0, 1.0, -1.5, 1 + step, element.least, element.largest, -element.largest})
      CHECK(stored(value) == value);
    CHECK(stored(element.least / 4) == 0);
    CHECK(stored(1 + step / 4) == 1);
    CHECK(stored(1 + 3 * step / 4) == 1 + step);
    for (double beyond : {element.largest * 1.5, std::ldexp(1.0, int(element.largestExponent()) + 1)})
      CHECK((element.dtype == DType::e4m3 ? stored(beyond) == element.largest : std::isinf(stored(beyond))));
    CHECK(stored(std::ldexp(1.0, int(element.largestExponent()))) == std::ldexp(1.0, int(element.largestExponent())));
    CHECK(std::isnan(stored(std::nan(""))));
    CHECK(throughMemory(element.dtype, -1.5f) == -1.5f);
    CHECK(throughMemory(element.dtype, 0.75) == 0.75);
  }
}

TEST_CASE("e4m3 in all of its 256 numbers, and between them") {
  std::vector<float> numbers;
  for (int byte = 0; byte < 256; ++byte) {
    const float number = e4m3ToFloat(uint8_t(byte));
    const int exponent = byte >> 3 & 15, fraction = byte & 7;
    const double expected = exponent ? std::ldexp(1 + fraction / 8.0, exponent - 7) : std::ldexp(fraction / 8.0, -6);
    CAPTURE(byte);
    CHECK(std::signbit(number) == (byte > 127));
    CHECK(std::isnan(number) == ((byte & 127) == 127));
    if (!std::isnan(number)) {
      CHECK(std::abs(number) == expected);
      CHECK(floatToE4m3(number) == byte);
      if (byte < 127)
        numbers.push_back(number);
    }
  }
  for (size_t i = 0; i + 1 < numbers.size(); ++i) { // ties go to the even one
    const float middle = (numbers[i] + numbers[i + 1]) / 2;
    CHECK(floatToE4m3(middle) == i + i % 2);
    CHECK(floatToE4m3(std::nextafter(middle, 0.0f)) == i);
    CHECK(floatToE4m3(std::nextafter(-middle, -1000.0f)) == (i + 1 | 128));
  }
  CHECK(e4m3ToFloat(floatToE4m3(INFINITY)) == 448);
  CHECK(e4m3ToFloat(floatToE4m3(-1e30f)) == -448);
}

TEST_CASE("integers come back, and as many bytes are written as the table says") {
  for (const ElementTraits &element : kElements) {
    CAPTURE(element.name);
    for (int64_t value : {0, 1, -7, 96})
      CHECK(throughMemory(element.dtype, value) == value);
    std::vector<std::byte> memory(64, std::byte(0x5a));
    const std::vector<float> ones(3, 1);
    storeElements(element.dtype, ones.data(), 3, memory.data(), 1);
    const auto isTouched = [](std::byte byte) { return byte != std::byte(0x5a); };
    CHECK(std::count_if(memory.begin(), memory.end(), isTouched) == 3 * element.bytes);
    CHECK(std::none_of(memory.begin(), memory.begin() + element.bytes, isTouched));
  }
  CHECK(throughMemory(DType::i32, int64_t(std::numeric_limits<int32_t>::min())) == std::numeric_limits<int32_t>::min());
  CHECK(throughMemory(DType::i64, std::numeric_limits<int64_t>::max()) == std::numeric_limits<int64_t>::max());
}

TEST_CASE("tensor files name every element, and hand out those of calls") {
  ScratchFolder folder;
  std::map<std::string, OperandTensor> operands;
  for (const ElementTraits &element : kElements)
    operands[element.name] = OperandTensor::reals(element.dtype, {3}, {1, -2, 3});
  REQUIRE(writeSafetensors(folder / "a", {}, {}, operands).isOk());
  const SafetensorsFile file = SafetensorsFile::open(folder / "a").take();
  for (const ElementTraits &element : kElements) {
    CAPTURE(element.name);
    CHECK(file.entries().at(element.name).fileDType == element.fileName);
    const Result<OperandTensor> operand = file.readOperand(element.name);
    REQUIRE(operand.isOk());
    CHECK(operand->element == element.dtype);
    CHECK(operand->real(1) == -2);
    CHECK(operand->integer(2) == 3);
    const Result<HostTensor> tensor = file.read(element.name);
    CHECK(tensor.isOk() == element.isOfCalls());
    if (tensor)
      CHECK(tensor->toFloats() == std::vector<float>{1, -2, 3});
    else
      CHECK(tensor.status().message().find("is " + std::string(element.fileName) +
                                           "; expected BF16, F16, F32 or F8_E4M3") != std::string::npos);
  }
}

TEST_CASE("types of MLIR and elements name each other") {
  mlir::MLIRContext context;
  for (const ElementTraits &element : kElements) {
    const mlir::Type type = attn::typeOf(&context, element.dtype);
    REQUIRE(type);
    CHECK(type.getIntOrFloatBitWidth() == 8 * element.bytes);
    CHECK(attn::elementOf(type) == element.dtype);
    CHECK(attn::isOperandType(mlir::MemRefType::get({4}, type)));
  }
  CHECK(!attn::elementOf(mlir::Float64Type::get(&context)));
  CHECK(!attn::isOperandType(mlir::MemRefType::get({4}, mlir::IndexType::get(&context))));
}

TEST_CASE("plans and stores keep the elements of calls by name, and refuse others") {
  ScratchFolder folder;
  Store store = openStore(folder / "a.db", writing());
  for (const ElementTraits &element : kElements) {
    if (!element.isOfCalls())
      continue;
    CAPTURE(element.name);
    KernelRecord record = someKernel(element.name);
    record.dtype = element.dtype;
    REQUIRE(store.publish(record, someWinner(record)).isOk());
    CHECK(store.kernel(element.name)->dtype == element.dtype);

    LaunchPlan plan{PlanService(Kind())};
    TensorMapSpec map;
    map.source = Role::k;
    map.dtype = element.dtype;
    map.dims = {64, LaunchSymbol::seqlenK};
    map.strideBytes = {LaunchExpr(128)};
    map.box = {64, 128};
    plan.launches.emplace_back().appendTensorMap(map);
    const std::string text = plan.str();
    CHECK(LaunchPlan::parse(text).isOk());
    CHECK(LaunchPlan::parse(text)->str() == text);
    std::string other = text;
    other.replace(other.find(element.name), std::string(element.name).size(), "i32");
    CHECK(LaunchPlan::parse(other).status().message().find("expected bf16, fp16, fp32 or e4m3, got 'i32'") !=
          std::string::npos);
  }
}

TEST_CASE("kernels compute with what has a struct of the device, and with nothing else") {
  const std::string device = readFile(test::places().source + "/codegen/Skeletons/Shared/elements.cuh");
  REQUIRE(!device.empty());
  for (const ElementTraits &element : kElements) {
    CAPTURE(element.name);
    KernelRequest request;
    request.elements = CallElements(element.dtype);
    CHECK(request.checkTypes(&ElementTraits::isComputed).isOk() == element.isComputed());
    CHECK(request.checkTypes().isOk() == element.isPacked());
    if (!element.isPacked())
      CHECK(request.checkTypes().message() == "serves bf16 and fp16, not " + std::string(element.name));
    if (!element.isComputed())
      continue;
    CHECK(device.find("struct " + std::string(element.deviceName) + " ") != std::string::npos);
    TraitsPrinter printer;
    printer.request(request, ProductTraits::of(request));
    CHECK(printer.str().find("using Element = heddle::" + std::string(element.deviceName) + ";") != std::string::npos);
    const DType out = element.isScaled() ? DType::bf16 : element.dtype;
    CHECK(printer.str().find("using OutElement = heddle::" + std::string(traitsOf(out).deviceName) + ";") !=
          std::string::npos);
    CHECK(printer.str().find("kElementBytes = " + std::to_string(element.bytes) + ";") != std::string::npos);
  }
}

TEST_CASE("products have a precision where elements are fp32, and kernels of their own by it") {
  KernelRequest request;
  request.elements = CallElements(DType::fp32, DType::fp32, Precision::tf32);
  CHECK(request.checkTypes(&ElementTraits::isComputed).isOk());
  CHECK(request.str().find("forward fp32 precision=tf32 ") == 0);
  TraitsPrinter printer;
  printer.request(request, ProductTraits::of(request));
  CHECK(printer.str().find("using Element = heddle::Tf32;") != std::string::npos);
  CHECK(printer.str().find("kMmaStep = 8;") != std::string::npos);
  request.elements = CallElements(DType::bf16, DType::bf16, Precision::tf32);
  CHECK(request.checkTypes(&ElementTraits::isComputed).message() ==
        "serves bf16 with precision exact, not tf32, which is of fp32");
}

TEST_CASE("out of e4m3 may be of other types, and keys of e4m3 beside another q are made fp16") {
  const auto traitsOf = [](const CallElements &elements) {
    KernelRequest request;
    request.elements = elements;
    TraitsPrinter printer;
    printer.request(request, ProductTraits::of(request));
    return printer.str();
  };
  CHECK(traitsOf(CallElements(DType::e4m3, DType::fp16)).find("OutElement = heddle::Fp16;") != std::string::npos);
  const std::string cached = traitsOf(CallElements(DType::bf16).withKeys(DType::e4m3));
  for (const char *line : {" Element = heddle::Fp16;", "OutElement = heddle::Bf16;", "kElementBytes = 2;",
                           "kLargestExponent = 15;", "kOutFloat32 = 0;"})
    CHECK_MESSAGE(cached.find(line) != std::string::npos, line);
}

TEST_CASE("the tables that leave the library have every element") {
  const nlohmann::json rows = nlohmann::json::parse(tablesText())["elements"];
  REQUIRE(rows.size() == std::size(kElements));
  for (size_t i = 0; i < rows.size(); ++i) {
    const ElementTraits &element = kElements[i];
    CHECK(rows[i] == nlohmann::json{{"name", element.name},
                                    {"mlir", element.mlirName},
                                    {"torch", element.torchName},
                                    {"number", element.code},
                                    {"bytes", element.bytes},
                                    {"dlpack", element.dlpackCode},
                                    {"out", dtypeName(CallElements::outOf(element.dtype))}});
  }
}
