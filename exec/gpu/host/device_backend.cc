// Looks up the backends that enqueue work on devices.
#include "exec/gpu/host/device_backend.h"

namespace bubblescope::exec {

const DeviceBackendDef* find_device_backend(std::string_view name) {
  return Registry<DeviceBackendDef>::instance().find(find_backend(name).name);
}

}  // namespace bubblescope::exec
