package adrel;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** JSON (RFC 8259) as Map, List, String, Double, Boolean, null. A library can take its place. */
final class Json {
    private static final Pattern NUMBER =
            Pattern.compile("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?");
    private static final int MAX_DEPTH = 32;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static String write(Object value) {
        if (value instanceof Map<?, ?> fields) {
            return fields.entrySet().stream()
                    .map(field -> quoted((String) field.getKey()) + ":" + write(field.getValue()))
                    .collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof List<?> items) {
            return items.stream().map(Json::write).collect(Collectors.joining(",", "[", "]"));
        }
        if (value instanceof Double number && !Double.isFinite(number)) {
            throw new IllegalArgumentException("JSON has no word for " + number);
        }
        return value instanceof String string ? quoted(string) : String.valueOf(value);
    }

    private static String quoted(String string) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : string.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || Character.isSurrogate(c)) { // half a pair has no UTF-8
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    /** The value of a text; IllegalArgumentException where it is not JSON or is too deep. */
    static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value(0);
        if (json.skipSpace() < text.length()) {
            throw json.fault("more text");
        }
        return value;
    }

    private Object value(int depth) {
        if (depth > MAX_DEPTH) {
            throw fault("too deep");
        }
        if (takes("{")) {
            Map<String, Object> fields = new LinkedHashMap<>();
            for (boolean more = !takes("}"); more; more = !closes("}")) {
                need("\"");
                String name = string();
                need(":");
                fields.put(name, value(depth + 1));
            }
            return fields;
        }
        if (takes("[")) {
            List<Object> items = new ArrayList<>();
            for (boolean more = !takes("]"); more; more = !closes("]")) {
                items.add(value(depth + 1));
            }
            return items;
        }
        if (takes("\"")) {
            return string();
        }
        if (takes("true")) {
            return true;
        }
        if (takes("false")) {
            return false;
        }
        return takes("null") ? null : number();
    }

    private Double number() {
        Matcher number = NUMBER.matcher(text).region(at, text.length());
        if (!number.lookingAt()) {
            throw fault("no value");
        }
        at = number.end();
        return Double.valueOf(number.group());
    }

    /** The rest of a string, behind its first quote. */
    private String string() {
        StringBuilder out = new StringBuilder();
        while (true) {
            char c = next();
            if (c == '"') {
                return out.toString();
            } else if (c < ' ') {
                throw fault("a bare control character");
            }
            out.append(c == '\\' ? escaped() : c);
        }
    }

    private char escaped() {
        char c = next();
        if (c == 'u') {
            at += 4;
            if (at > text.length() || !text.substring(at - 4, at).matches("[0-9a-fA-F]{4}")) {
                throw fault("a bad escape");
            }
            return (char) Integer.parseInt(text.substring(at - 4, at), 16);
        }
        int index = "\"\\/bfnrt".indexOf(c);
        if (index < 0) {
            throw fault("a bad escape");
        }
        return "\"\\/\b\f\n\r\t".charAt(index);
    }

    private char next() {
        if (at == text.length()) {
            throw fault("no end of a string");
        }
        return text.charAt(at++);
    }

    /** Whether the list or object ends here; else there must be a comma. */
    private boolean closes(String bracket) {
        if (takes(bracket)) {
            return true;
        }
        need(",");
        return false;
    }

    private void need(String token) {
        if (!takes(token)) {
            throw fault("no " + token);
        }
    }

    private boolean takes(String token) {
        boolean found = text.startsWith(token, skipSpace());
        at += found ? token.length() : 0;
        return found;
    }

    private int skipSpace() {
        while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        return at;
    }

    private IllegalArgumentException fault(String problem) {
        return new IllegalArgumentException("not JSON: " + problem + " at character " + at);
    }
}
