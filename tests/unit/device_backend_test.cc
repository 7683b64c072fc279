// The backends that enqueue work on devices, among all backends.
#include "exec/gpu/host/device_backend.h"

#include <gtest/gtest.h>

#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

TEST(DeviceBackends, AreTheBackendsThatMakeNoneOnTheHost) {
  for (const exec::BackendDef& def : Registry<exec::BackendDef>::instance().all())
    EXPECT_NE(static_cast<bool>(def.make), exec::find_device_backend(def.name) != nullptr)
        << def.name;
  for (const exec::DeviceBackendDef& def : Registry<exec::DeviceBackendDef>::instance().all()) {
    EXPECT_EQ(exec::find_backend(def.name).name, def.name);
    EXPECT_TRUE(def.start) << def.name;
  }
}

TEST(DeviceBackends, AreFoundByTheAliasesOfBackends) {
  EXPECT_NE(exec::find_device_backend("cuda"), nullptr);
  EXPECT_EQ(exec::find_device_backend("gpu"), exec::find_device_backend("cuda"));
  EXPECT_EQ(exec::find_device_backend("cpu"), nullptr);
  EXPECT_EQ(error_of([&] { exec::find_device_backend("abacus"); }),
            "no backend is called 'abacus' ('bubblescope list backends' shows those of this "
            "build)");
}

}  // namespace
}  // namespace bubblescope::tests
