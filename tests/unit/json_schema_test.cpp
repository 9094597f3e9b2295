#include "grammar/json_schema.h"

#include <gtest/gtest.h>

#include "support/constrained.h"
#include "support/json_schema_check.h"

namespace exl3::test {
namespace {

Json json(std::string_view text) {
    return parse_json(text, "test").value();
}

bool takes(const std::shared_ptr<Constraint>& c, std::string_view text) {
    ConstraintState state(c);
    return state.accept_text(text) && state.may_end();
}
bool takes(std::string_view schema, std::string_view text) {
    return takes(Constraint::json_schema(json(schema), small_vocabulary()), text);
}

void expect_refused(std::string_view schema, const std::string& part) {
    try {
        Constraint::json_schema(json(schema), small_vocabulary());
        FAIL() << schema << ": no error, needed one with '" << part << "'";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), Errc::invalid_argument);
        EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
}

const std::vector<std::string>& schemas() {
    static const std::vector<std::string> all = {
        R"({})",
        R"({"type": "object"})",
        R"({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
            "required": ["name", "age"], "additionalProperties": false})",
        R"({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}, "c": {"type": "null"}},
            "required": ["b"]})",
        R"({"type": "object", "properties": {"ab": {"type": "boolean"}, "abc": {}},
            "additionalProperties": {"type": "integer", "minimum": 3, "maximum": 1234}})",
        R"({"type": "array", "items": {"type": "integer", "minimum": -17, "exclusiveMaximum": 205}, "minItems": 2, "maxItems": 5})",
        R"({"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": {"type": "null"}, "minItems": 1, "maxItems": 4})",
        R"({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "integer"}], "items": false})",
        R"({"enum": ["red", "green", 3, null, {"a": [1]}]})",
        R"({"const": "only \"this\" \n"})",
        R"({"type": ["string", "null"], "minLength": 2, "maxLength": 5})",
        R"({"type": "string", "minLength": 150, "maxLength": 170})",
        R"({"type": "string", "pattern": "^[a-c]+-\\d{2,3}$"})",
        R"({"type": "string", "pattern": "b\"?c"})",
        R"({"anyOf": [{"type": "integer", "multipleOf": 7}, {"type": "object", "properties": {"kind": {"const": "x"}}, "required": ["kind"]}]})",
        R"({"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"],
            "oneOf": [{"properties": {"value": {"type": "integer"}}, "required": ["value"]}, {"properties": {"city": {"type": "string"}}}]})",
        R"({"allOf": [{"type": "object", "properties": {"a": {"type": "integer", "minimum": 5}}}, {"properties": {"a": {"maximum": 9}}, "required": ["a"]}]})",
        R"({"$defs": {"node": {"type": "object", "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
            "required": ["value", "next"], "additionalProperties": false}}, "$ref": "#/$defs/node"})",
        R"({"type": "number", "minimum": -2.5, "maximum": 13.75})",
        R"({"type": "number", "exclusiveMinimum": 0})",
        R"({"type": "number", "exclusiveMinimum": 0.125, "exclusiveMaximum": 0.5})",
        R"({"type": "number", "minimum": 99.5})",
        R"({"type": "number", "maximum": -0.001})",
        R"({"type": "number", "multipleOf": 0.01})",
        R"({"type": "object", "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": false})",
        R"({"type": "object", "propertyNames": {"pattern": "^[a-z]{1,3}$"}, "additionalProperties": {"type": "boolean"}, "minProperties": 1, "maxProperties": 3})",
        R"({"type": "object", "properties": {"list": {"type": "array", "items": {"$ref": "#/properties/list/items/x"}}}, "x": 1})",
    };
    return all;
}

}  // namespace

// Whatever is drawn, what comes out is JSON that the schema accepts.
TEST(JsonSchema, RandomTokensMakeValidJson) {
    const auto trie = small_vocabulary();
    for (size_t i = 0; i + 1 < schemas().size(); ++i) {
        const Json schema = json(schemas()[i]);
        const auto c = Constraint::json_schema(schema, trie);
        const SchemaCheck check(schema);
        int ended = 0;
        for (uint64_t seed = 0; seed < 40; ++seed) {
            const Written w = write_at_random(c, *trie, 100 * i + seed, 600);
            if (!w.ended) continue;
            ++ended;
            // Keys that repeat are JSON, if not what parse_json takes; the last one counts.
            const Json value = Json::parse(w.text, nullptr, false);
            ASSERT_FALSE(value.is_discarded()) << schemas()[i] << "\n" << w.text;
            EXPECT_TRUE(check.valid(value)) << schemas()[i] << "\n" << w.text;
        }
        EXPECT_GT(ended, 20) << schemas()[i];
    }
}

TEST(JsonSchema, TakesTheFormsThatModelsWrite) {
    constexpr const char* person =
        R"({"type": "object", "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["name"]})";
    EXPECT_TRUE(takes(person, R"({"name": "Ann", "tags": ["a", "b"]})"));
    EXPECT_TRUE(takes(person, R"({"name":"Ann","tags":[]})"));
    EXPECT_TRUE(takes(person, "{\n  \"name\": \"Ann\",\n  \"tags\": [\n    \"a\"\n  ]\n}"));
    EXPECT_TRUE(takes(person, R"({"name": "\u00e9\ud83d\ude00 \" \\ \/ é"})"));
    EXPECT_FALSE(takes(person, R"({"name": "\ud83d"})"));
    EXPECT_FALSE(takes(person, "{\"name\": \"line\nend\"}"));
    EXPECT_FALSE(takes(person, R"({"tags": []})"));
    EXPECT_FALSE(takes(person, R"({"name": "Ann", "more": 1})"));
    EXPECT_FALSE(takes(person, R"({"tags": [], "name": "order is the schema's"})"));
}

TEST(JsonSchema, NumbersKeepTheirLimits) {
    const auto check = [](const char* schema, const std::vector<std::string>& good,
                          const std::vector<std::string>& bad) {
        const auto c = Constraint::json_schema(json(schema), small_vocabulary());
        for (const auto& t : good) EXPECT_TRUE(takes(c, t)) << schema << " " << t;
        for (const auto& t : bad) EXPECT_FALSE(takes(c, t)) << schema << " " << t;
    };
    check(R"({"type": "integer"})", {"0", "-7", "1234567890123456"},
          {"01", "1.0", "1e3", "+1", "-", ""});
    check(R"({"type": "number"})", {"0", "-0.5", "1e10", "2.5E-3"},
          {".5", "1.", "1e", "NaN", "1e1000"});
    check(R"({"type": "integer", "minimum": 10, "maximum": 305})",
          {"10", "99", "100", "299", "305"}, {"9", "306", "-10", "1000", "010"});
    check(R"({"type": "integer", "exclusiveMinimum": -3, "exclusiveMaximum": 2})",
          {"-2", "-1", "0", "1"}, {"-3", "2", "-0"});
    check(R"({"type": "number", "minimum": 0.5, "maximum": 2})",
          {"0.5", "0.75", "1", "1.999", "2", "2.0", "0.50"}, {"0.49", "2.01", "0", "-1", "3"});
    check(R"({"type": "number", "minimum": -1.25, "exclusiveMaximum": 0})",
          {"-1.25", "-1", "-0.01"}, {"-1.26", "0", "-0", "0.1", "-2"});
}

TEST(JsonSchema, Formats) {
    const auto format = [](const std::string& name, const std::string& text) {
        return takes(R"({"type": "string", "format": ")" + name + "\"}", "\"" + text + "\"");
    };
    EXPECT_TRUE(format("date", "2024-02-28"));
    EXPECT_FALSE(format("date", "2024-02-30"));
    EXPECT_FALSE(format("date", "2024-13-01"));
    EXPECT_TRUE(format("date-time", "2024-01-15T12:30:59.25+02:00"));
    EXPECT_FALSE(format("date-time", "2024-01-15"));
    EXPECT_TRUE(format("uuid", "123e4567-e89b-12d3-a456-426614174000"));
    EXPECT_TRUE(format("email", "a.b+c@example.co.uk"));
    EXPECT_FALSE(format("email", "a@"));
    EXPECT_TRUE(format("ipv4", "192.168.0.255"));
    EXPECT_FALSE(format("ipv4", "256.1.1.1"));
    EXPECT_TRUE(format("ipv6", "2001:db8:0:0:0:0:0:1"));
    EXPECT_TRUE(format("uri", "https://example.com/a/b?q=1#f"));
    EXPECT_TRUE(format("duration", "P3DT4H"));
    EXPECT_TRUE(format("colour", "an unknown format is an annotation"));
}

TEST(JsonSchema, NamesWhatItDoesNotSupport) {
    expect_refused(R"({"not": {"type": "string"}})", "'not' is not supported");
    expect_refused(R"({"type": "object", "properties": {"a": {"if": {}}}})",
                   "/properties/a: keyword 'if'");
    expect_refused(R"({"type": "array", "uniqueItems": true})", "'uniqueItems'");
    expect_refused(R"({"type": "array", "contains": {}})", "'contains'");
    expect_refused(R"({"type": "text"})", "found \"text\"");
    expect_refused(R"({"$ref": "other.json"})", "other.json");
    expect_refused(R"({"$ref": "#/$defs/none"})", "there is no");
    expect_refused(R"({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"})",
                   "no text that ends");
    expect_refused(R"({"type": "string", "pattern": "(a"})", "/pattern");
    expect_refused(R"({"type": "string", "minLength": -1})", "/minLength");
    expect_refused(R"({"enum": []})", "/enum");
    expect_refused(R"({"type": "string", "minLength": 3, "maxLength": 2})", "no text that ends");
    expect_refused(R"({"anyOf": 3})", "/anyOf");
    expect_refused(R"({"type": "object", "required": "name"})", "/required");
    expect_refused(R"([1])", "needed a schema");
    expect_refused(R"({"nullable": "yes", "type": "string"})", "JSON schema");
    std::string deep = R"({"type": "string"})";
    for (int i = 0; i < 150; ++i) deep = R"({"type": "array", "items": )" + deep + "}";
    expect_refused(deep, "deeper");
}

}  // namespace exl3::test
