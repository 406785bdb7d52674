#include "runtime/Core/CallMemory.h"
#include "runtime/Core/StridedBytes.h"

namespace heddle {
namespace {

// Trivial: launches have room for many and use a few.
struct Place {
  StridedBytes bytes;
  const char *name;
  int64_t number; // behind the name; below 0: none
  bool isWritten, isRead;

  std::string str() const { return number < 0 ? name : name + std::to_string(number); }
};

Status meeting(const Place &written, const Place &other) {
  const int64_t distance = int64_t(written.bytes.first() - other.bytes.first());
  const std::string where = distance == 0  ? "the same address"
                            : distance > 0 ? "memory that begins " + std::to_string(distance) + " bytes behind it"
                                           : "memory that begins " + std::to_string(-distance) + " bytes before it";
  return badArguments(written.str() + ": expected memory apart from " + other.str() +
                      (other.isRead ? ", which is still read when it is written, got " : ", got ") + where);
}

class Places {
public:
  void add(const Place &place) {
    if (!place.bytes.isEmpty())
      places[count++] = place;
  }

  Status check() const {
    for (int i = 0; i < count; ++i)
      for (int j = 0; j < count && places[i].isWritten; ++j)
        if ((j < i || !places[j].isWritten) && places[i].bytes.sharesBytesWith(places[j].bytes))
          return meeting(places[i], places[j]);
    return {};
  }

private:
  Place places[kRoleCount + 2 * kMaxArguments + 1];
  int count = 0;
};

} // namespace

Status checkApart(const CallRules &rules, const heddle_attention_args &args, const LaunchSymbols &symbols,
                  const MorePlaces &more) {
  Places places;
  for (const KindRole &known : *rules.roles) {
    const RoleSpec role = specOf(known);
    const bool isWritten = includes(known.access, Access::write), isRead = includes(known.access, Access::read);
    const StridedBytes bytes =
        role.form == RoleForm::tensor
            ? StridedBytes::ofTensor(tensorOf(args, known.role), dtypeBytes(rules.elements.of(role.element)))
            : StridedBytes::ofArray(addressOf(args, known.role),
                                    elementsOf(role, symbols) * dtypeBytes(rules.elements.of(role.element)));
    if (isWritten && bytes.overlapsItself())
      return badArguments(std::string(role.name) + ": strides: expected elements that do not overlap");
    places.add({bytes, role.name, -1, isWritten, isRead});
  }
  for (int i = 0; i < more.operandCount; ++i)
    places.add({StridedBytes::ofArray(more.operands[i].address, more.operands[i].bytes), "operands: pointer number ",
                more.operands[i].number, false, true});
  for (int i = 0; i < more.gradientCount; ++i)
    places.add({StridedBytes::ofArray(more.gradients[i].address, more.gradients[i].bytes), "gradients: argument ",
                more.gradients[i].number, true, false});
  places.add({StridedBytes::ofArray(more.workspace, more.workspaceBytes), "workspace", -1, true, false});
  return places.check();
}

} // namespace heddle
