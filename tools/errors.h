// Errors of the program: the exit status, and the message on stderr.
#pragma once

#include <exception>
#include <string>

#include "sim/ir/error.h"

namespace bubblescope::tools {

/// Returns the exit status for an Error.
int exit_status(Fault fault);

/// Returns the Error for an exception of the standard library: the machine failed.
Error to_error(const std::exception& error);

/// Prints "bubblescope: ..." to stderr. Never throws, even if stderr cannot be written.
void print_error(const std::string& message);

}  // namespace bubblescope::tools
