// The full parser behind the fast one: it finds faults and words them.
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "traces/json/json_node.h"
#include "traces/json/scan_json.h"

namespace bubblescope::traces {

namespace {

/// Passes on what the full parser finds, and words what it refuses.
class FullParser : public nlohmann::json_sax<nlohmann::json> {
 public:
  FullParser(std::string_view text, const std::string& file, JsonVisitor& visitor,
             const std::function<bool()>& may_end)
      : text_(text), file_(file), visitor_(visitor), may_end_(may_end) {}

  bool null() override { return word("null"); }
  bool boolean(bool value) override { return word(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return number(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return number(text); }
  bool string(string_t& value) override {
    visitor_.visit_string(value);
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool key(string_t& name) override {
    visitor_.visit_key(name);
    return true;
  }
  bool start_object(std::size_t) override {
    visitor_.begin_object();
    return true;
  }
  bool end_object() override {
    visitor_.end_object();
    return true;
  }
  bool start_array(std::size_t) override {
    visitor_.begin_array();
    return true;
  }
  bool end_array() override {
    visitor_.end_array();
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const bool lacks_end = byte > text_.size() && may_end_();
    if (!lacks_end) throw invalid_json(text_, byte, error, file_);
    return false;
  }

 private:
  bool word(std::string_view text) {
    visitor_.visit_word(text);
    return true;
  }

  bool number(const std::string& text) {
    visitor_.visit_number(text);
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  JsonVisitor& visitor_;
  const std::function<bool()>& may_end_;
};

}  // namespace

void parse_json_into(std::string_view text, const std::string& file, JsonVisitor& visitor,
                     const std::function<bool()>& may_end) {
  FullParser parser(text, file, visitor, may_end);
  nlohmann::json::sax_parse(text.begin(), text.end(), &parser);
}

}  // namespace bubblescope::traces
