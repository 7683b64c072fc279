// Looks up registered backends.
#include "exec/runtime/backend.h"

#include "sim/ir/error.h"

namespace bubblescope::exec {

const BackendDef& find_backend(std::string_view name) {
  const auto& registry = Registry<BackendDef>::instance();
  if (const BackendDef* def = registry.find(name)) return *def;
  const std::string nearest = registry.nearest(name);
  throw Error("no backend is called '" + std::string(name) + "'" + suggestion(nearest) +
              " ('bubblescope list backends' shows those of this build)");
}

}  // namespace bubblescope::exec
