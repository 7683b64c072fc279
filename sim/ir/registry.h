// Registries, the only globals. A file adds a schedule, a format or a backend by defining one
// Registrar. Entries are found by name or alias, in any case.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bubblescope::inline sim {

/// Lower case, with '_' as '-': "ZB_H1" and "zb-h1" are the same name.
std::string normalize_name(std::string_view name);

/// The known name with the smallest edit distance to a mistyped one; empty if none is close.
std::string find_nearest_name(std::string_view name, const std::vector<std::string>& known);

/// "; did you mean 'zb-h1'?" for the nearest name; empty if there is none.
std::string suggestion(std::string_view nearest);

/// Definitions with `name` and `aliases`, sorted by name.
template <class Def>
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  void add(Def def) {
    const auto after =
        std::upper_bound(defs_.begin(), defs_.end(), def,
                         [](const Def& left, const Def& right) { return left.name < right.name; });
    defs_.insert(after, std::move(def));
  }

  const std::vector<Def>& all() const { return defs_; }

  const Def* find(std::string_view wanted) const {
    const std::string name = normalize_name(wanted);
    for (const Def& def : defs_) {
      if (normalize_name(def.name) == name) return &def;
      for (const std::string& alias : def.aliases)
        if (normalize_name(alias) == name) return &def;
    }
    return nullptr;
  }

  /// The nearest known name or alias, for "did you mean"; empty if none is close.
  std::string nearest(std::string_view wanted) const {
    std::vector<std::string> known;
    for (const Def& def : defs_) {
      known.push_back(def.name);
      known.insert(known.end(), def.aliases.begin(), def.aliases.end());
    }
    return find_nearest_name(wanted, known);
  }

 private:
  std::vector<Def> defs_;
};

/// `const Registrar<ScheduleDef> registrar{{...}};` at file scope registers a definition.
template <class Def>
struct Registrar {
  explicit Registrar(Def def) { Registry<Def>::instance().add(std::move(def)); }
};

}  // namespace bubblescope::inline sim
