// Owns the way between a KernelConfig and the struct that a family's own code reads: members with their defaults, and
// one list, `static const FieldsOf<T> &fields()`, that names them.
#pragma once

#include "codegen/Config/KernelConfig.h"

#include <cassert>

namespace heddle {

template <class T> struct FieldOf {
  const char *name;
  int64_t T::*member;
  int64_t least, most;
  std::vector<std::string> names = {}; ///< as ConfigField::names
};

/// The names of values of a field that says whether something is done.
inline std::vector<std::string> noOrYes() { return {"no", "yes"}; }

template <class T> struct FieldsOf {
  const char *skeleton;
  std::vector<FieldOf<T>> list;
};

template <class T> const ConfigFields &configFields() {
  static const ConfigFields fields = [] {
    ConfigFields result{T::fields().skeleton, {}};
    for (const FieldOf<T> &field : T::fields().list)
      result.list.push_back({field.name, T().*field.member, field.least, field.most, field.names});
    return result;
  }();
  return fields;
}

template <class T> void readFields(const KernelConfig &config, T &view) {
  assert(&config.fields() == &configFields<T>() && "the configuration is one of the family");
  size_t place = 0;
  for (const FieldOf<T> &field : T::fields().list)
    view.*field.member = config[place++];
}

template <class T> KernelConfig writeFields(const T &view) {
  KernelConfig config(configFields<T>());
  size_t place = 0;
  for (const FieldOf<T> &field : T::fields().list)
    config[place++] = view.*field.member;
  return config;
}

/// A rule of a family as Constraint::reason.
template <class T, auto rule>
std::optional<std::string> ruleOf(const KernelRequest &request, const KernelConfig &config) {
  return rule(request, T(config));
}

} // namespace heddle
