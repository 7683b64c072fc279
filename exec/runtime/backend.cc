// Looks up registered backends.
#include "exec/runtime/backend.h"

#include "sim/ir/error.h"
#include "sim/ir/nearest_names.h"

namespace bubblescope::exec {

const BackendDef& find_backend(std::string_view name) {
  const auto& registry = Registry<BackendDef>::instance();
  if (const BackendDef* def = registry.find(name)) return *def;
  throw Error("no backend is called '" + std::string(name) + "'" +
              suggestion(nearest_names(name, registry)) +
              " ('bubblescope list backends' shows those of this build)");
}

}  // namespace bubblescope::exec
