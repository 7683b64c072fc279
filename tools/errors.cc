// Puts errors into the words of the command line.
#include "tools/errors.h"

#include "tools/flags/field_names.h"
#include "tools/print.h"

namespace bubblescope::tools {

int exit_status(Fault fault) {
  switch (fault) {
    case Fault::kProblem: return 1;
    case Fault::kUsage: return 2;
    case Fault::kMachine:
    case Fault::kMemory: return 3;
  }
  return 3;
}

void print_error(const std::string& message) {
  print_message("bubblescope: {}\n", name_flags(message));
}

}  // namespace bubblescope::tools
