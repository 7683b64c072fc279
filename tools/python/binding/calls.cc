// Turns messages and errors into Python's.
#include "tools/python/binding/calls.h"

#include <nanobind/stl/string.h>

#include "tools/flags/field_names.h"

namespace bubblescope::tools {

namespace nb = nanobind;

namespace {

const char* class_name(Fault fault) {
  switch (fault) {
    case Fault::kProblem: return "ProblemError";
    case Fault::kUsage: return "UsageError";
    case Fault::kMachine:
    case Fault::kMemory: return "MachineError";
  }
  return "Error";
}

nb::module_ errors() { return nb::module_::import_("bubblescope.errors"); }

}  // namespace

void warn(const std::string& messages) {
  if (!messages.empty()) errors().attr("warn_of")(messages);
}

void raise_in_python(const Error& error, const std::string& messages) {
  const nb::module_ module = errors();
  const nb::object type = module.attr(class_name(error.fault()));
  const nb::object raised = module.attr("make_error")(type, name_flags(error.what()), messages);
  PyErr_SetObject(type.ptr(), raised.ptr());
  throw nb::python_error();
}

void expect_no_signal() {
  const nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace bubblescope::tools
