// Puts errors into the words of the command line.
#include "tools/errors.h"

#include <new>
#include <stdexcept>

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

Error to_error(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::length_error*>(&error) != nullptr)
    return {Fault::kMachine, "out of memory; ask for fewer stages or micro-batches"};
  return {Fault::kMachine, error.what()};
}

void print_error(const std::string& message) {
  print_message("bubblescope: {}\n", name_flags(message));
}

}  // namespace bubblescope::tools
