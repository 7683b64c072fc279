// Scans json several times faster than a parser that builds values: it passes on views of the text,
// and checks what the visitor does not want without looking at it twice.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace bubblescope::traces {

/// Receives the pieces of a json text in order.
class JsonVisitor {
 public:
  virtual ~JsonVisitor() = default;

  /// A key of the current object. Its value is skipped where this returns false.
  virtual bool visit_key(std::string_view key) = 0;
  virtual void visit_string(std::string_view value) = 0;  ///< without quotes and escapes
  virtual void visit_number(std::string_view text) = 0;   ///< as it is written
  virtual void visit_word(std::string_view) {}            ///< true, false or null
  virtual void begin_object() = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;
};

/// Scans a whole text. Returns false where it is not json that is certainly valid: then a full
/// parser finds the fault, or that there is none. What the visitor received until then is void.
bool scan_json(std::string_view text, JsonVisitor& visitor);

/// The same with a full parser, which throws Error with line and column for the first fault. The
/// text may end too early where `may_end` returns true.
void parse_json_into(std::string_view text, const std::string& file, JsonVisitor& visitor,
                     const std::function<bool()>& may_end);

}  // namespace bubblescope::traces
