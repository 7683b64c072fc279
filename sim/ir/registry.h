// Registries, the only globals. A file adds a schedule, a format or a backend by defining one
// Registrar. Entries are found by name or alias, in any case.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace bubblescope::inline sim {

/// Lower case, with '_' as '-': "ZB_H1" and "zb-h1" are the same name.
std::string normalize_name(std::string_view name);

/// A node in the list of what a program was linked with. It makes its definitions when they are
/// first asked for, so that a program which needs none starts without them.
template <class Def>
class Registrar {
 public:
  /// `const Registrar<ScheduleDef> registrar{[] { return ScheduleDef{...}; }};` at file scope
  /// registers a definition; a vector registers several.
  template <class Make>
  explicit Registrar(Make) : append_(&append<Make>), next_(first) {
    first = this;
  }
  Registrar(const Registrar&) = delete;
  Registrar& operator=(const Registrar&) = delete;

  static std::vector<Def> make_all() {
    std::vector<Def> defs;
    for (const Registrar* each = first; each != nullptr; each = each->next_) each->append_(defs);
    return defs;
  }

 private:
  template <class Make>
  static void append(std::vector<Def>& defs) {
    static_assert(std::is_empty_v<Make>, "give a lambda, which is kept by its type alone");
    auto made = Make{}();
    if constexpr (std::is_same_v<decltype(made), Def>)
      defs.push_back(std::move(made));
    else
      for (Def& each : made) defs.push_back(std::move(each));
  }

  static constinit inline const Registrar* first = nullptr;

  void (*append_)(std::vector<Def>& defs);
  const Registrar* next_;
};

/// Definitions with `name` and `aliases`, sorted by name.
template <class Def>
class Registry {
 public:
  static const Registry& instance() {
    static const Registry registry;
    return registry;
  }

  const std::vector<Def>& all() const { return defs_; }

  const Def* find(std::string_view wanted) const {
    for (const Def& def : defs_)
      if (def.name == wanted) return &def;
    const std::string name = normalize_name(wanted);
    for (const Def& def : defs_) {
      if (normalize_name(def.name) == name) return &def;
      for (const std::string& alias : def.aliases)
        if (normalize_name(alias) == name) return &def;
    }
    return nullptr;
  }

 private:
  Registry() : defs_(Registrar<Def>::make_all()) {
    std::sort(defs_.begin(), defs_.end(),
              [](const Def& left, const Def& right) { return left.name < right.name; });
  }

  std::vector<Def> defs_;
};

}  // namespace bubblescope::inline sim
