// Lists the registered schedules: fails if the linker dropped the objects that register them.
#include <cstdio>

#include "sim/model/schedule_def.h"

int main() {
  const auto& schedules = bubblescope::Registry<bubblescope::ScheduleDef>::instance().all();
  for (const auto& schedule : schedules) std::printf("%s ", schedule.name.c_str());
  return schedules.empty() ? 1 : 0;
}
