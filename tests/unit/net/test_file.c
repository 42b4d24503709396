/* Networks from JSON: the examples load and flow, mistakes are named by line or by place. */
#include "lab/net_file.h"
#include "net/net.h"
#include "unit/net/nets.h"

#include "support/failing_alloc.h"

#include <cgam/flow.h>
#include <cgam/io.h>
#include <unistd.h>

TEST_ENV(the_examples_load_and_their_energy_falls)
{
    static const char *const names[] = {"two_stage", "hopfield", "higher_order"};
    static const int64_t winners[] = {1, 1, 0};
    for (int i = 0; i < 3; i++) {
        char path[128];
        cgam_net_file file;
        cgam_flow_report r;
        snprintf(path, sizeof path, "examples/%s.json", names[i]);
        CHECK_STATUS(env, cgam_net_file_open(env, check_source_path(path), &file));
        assert_non_null(file.title);
        CHECK_STATUS(env, cgam_flow_run(file.net, 1, file.x, &file.flow, &r));
        assert_true(r.end == CGAM_FLOW_STEADY || r.end == CGAM_FLOW_HORIZON);
        CHECK_LE(r.energy_rise, 1e-9);
        assert_int_equal(r.winner, winners[i]);
        cgam_net_file_close(&file);
        assert_null(file.net);
    }
}

TEST_ENV(a_document_becomes_what_it_says)
{
    static const char text[] =
        "{\"format\":\"cgam-net/1\",\"title\":\"t\",\"layers\":["
        "{\"name\":\"x\",\"shape\":[2,3],\"lagrangian\":\"softmax\",\"beta\":2.5,\"axes\":1,"
        "\"scale\":3,\"tau\":0.5,\"init\":[[1,2,3],[4,5,6]]},"
        "{\"name\":\"y\",\"shape\":2,\"init\":7},{\"name\":\"z\",\"shape\":[]}],"
        "\"weights\":{\"W\":[[1,2],[3,4],[5,6],[7,8],[9,10],[11,12]]},"
        "\"synapses\":[{\"kind\":\"bilinear\",\"layers\":[\"x\",\"y\"],\"weights\":\"W\","
        "\"gain\":0.5},{\"name\":\"own\",\"kind\":\"gram\",\"layers\":[\"x\"],\"weights\":\"W\"}],"
        "\"clamps\":[{\"layer\":\"y\",\"value\":[1,-1],\"from\":1,\"to\":2}],"
        "\"flow\":{\"method\":\"rk4\",\"step\":0.125,\"t_end\":3,\"watch\":\"x\",\"sample\":0.5,"
        "\"stop\":[\"winner\",\"settled\"],\"steady\":0}}";
    cgam_net_file file;
    CHECK_STATUS(env, cgam_net_file_parse(env, "text", text, strlen(text), NULL, &file));
    assert_string_equal(file.title, "t");
    assert_int_equal(cgam_net_describe(file.net).layers, 3);
    assert_int_equal(cgam_net_describe(file.net).size, 9);
    cgam_layer_view x = cgam_net_layer(file.net, 0);
    assert_int_equal(x.ndim, 2);
    CHECK_CLOSE(x.param[0], 2.5, 0);
    CHECK_CLOSE(x.scale, 3, 0);
    CHECK_CLOSE(x.tau, 0.5, 0);
    const double want[] = {1, 2, 3, 4, 5, 6, 7, 7, 0};
    CHECK_CLOSE_ALL(file.x, want, 9, 0);
    assert_string_equal(cgam_net_synapse(file.net, 0).name, "bilinear 0");
    assert_string_equal(cgam_net_synapse(file.net, 1).name, "own");
    CHECK_CLOSE(cgam_net_synapse(file.net, 0).gain, 0.5, 0);
    assert_int_equal(file.flow.method, CGAM_FLOW_RK4);
    assert_int_equal(file.flow.watch, 0);
    assert_int_equal(file.flow.stop, CGAM_EVENT_WINNER | CGAM_EVENT_SETTLED);
    assert_int_equal(file.flow.clamp_count, 1);
    CHECK_CLOSE(file.flow.clamps[0].value[1], -1, 0);
    CHECK_CLOSE(file.flow.clamps[0].to, 2, 0);
    /* softmax over the last axis: two distributions, three times as large */
    double a[9], parts[5];
    CHECK_STATUS(env, cgam_net_eval(file.net, 1, file.x, NULL,
                                    &(cgam_net_values){.activation = a, .parts = parts}));
    CHECK_CLOSE(a[0] + a[1] + a[2], 3, 1e-14);
    CHECK_CLOSE(a[3] + a[4] + a[5], 3, 1e-14);
    /* gram with a zero diagonal: x'(WW' - diag)x / 2 */
    double Wx[2] = {0}, own = 0;
    for (int i = 0; i < 6; i++) {
        double w0 = 2 * i + 1, w1 = 2 * i + 2;
        Wx[0] += w0 * a[i];
        Wx[1] += w1 * a[i];
        own += (w0 * w0 + w1 * w1) * a[i] * a[i];
    }
    CHECK_REL(parts[4], 0.5 * (Wx[0] * Wx[0] + Wx[1] * Wx[1] - own), 1e-12);
    cgam_net_file_close(&file);
}

TEST_ENV(weights_come_from_files_beside_the_document)
{
    char dir[] = "/tmp/cgam-net-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    const float W[] = {3, 4, 0, 0, 1, 1};
    const int64_t shape[] = {3, 2};
    snprintf(path, sizeof path, "%s/W.npy", dir);
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F32, 2, shape, W));
    for (int unit = 0; unit < 2; unit++) {
        char text[512];
        snprintf(
            text, sizeof text,
            "{\"format\":\"cgam-net/1\",\"layers\":[{\"name\":\"x\",\"shape\":3,\"init\":1},"
            "{\"name\":\"y\",\"shape\":2,\"init\":[1,0]}],\"synapses\":[{\"name\":\"W\","
            "\"kind\":\"bilinear\",\"layers\":[\"x\",\"y\"],\"weights\":{\"file\":\"W.npy\"%s}}]}",
            unit ? ",\"normalize\":true" : "");
        cgam_net_file file;
        double parts[3];
        CHECK_STATUS(env, cgam_net_file_parse(env, "text", text, strlen(text), dir, &file));
        CHECK_STATUS(env,
                     cgam_net_eval(file.net, 1, file.x, NULL, &(cgam_net_values){.parts = parts}));
        CHECK_CLOSE(parts[2], unit ? -(0.6 + 1 / sqrt(2)) : -4, 1e-14);
        cgam_net_file_close(&file);
        CHECK_REFUSED(env, CGAM_E_FORMAT, "$.synapses[0].weights.file: 'W.npy': files",
                      cgam_net_file_parse(env, "text", text, strlen(text), NULL, &file));
        unlink(path);
        CHECK_REFUSED(env, CGAM_E_NOT_FOUND, "$.synapses[0].weights.file",
                      cgam_net_file_parse(env, "text", text, strlen(text), dir, &file));
        CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F32, 2, shape, W));
    }
    unlink(path);
    rmdir(dir);
}

/* ---- mistakes --------------------------------------------------------------------------------- */
#define HEAD "{\"format\":\"cgam-net/1\",\"layers\":[{\"name\":\"x\",\"shape\":2}"
#define LAYERS HEAD "]"
#define SYNAPSE(text) LAYERS ",\"synapses\":[" text "]}"

/* From an image of one channel to one of two. */
#define IMAGES                                                                                     \
    "{\"format\":\"cgam-net/1\",\"layers\":[{\"name\":\"from\",\"shape\":[2,2,1]},"                \
    "{\"name\":\"to\",\"shape\":[2,2,2]}],\"synapses\":["
#define CONVOLUTION "{\"kind\":\"convolution\",\"layers\":[\"to\",\"from\"]"

static const struct {
    const char *text, *message;
} mistakes[] = {
    /* syntax: file, line, column */
    {"{\"format\":\"cgam-net/1\",\n\"layers\":[}", "text:2:"},
    {"{\"format\":\"cgam-net/1\"} x", "text:1:"},
    {"{\"format\":\"cgam-net/1\",\n\n\"format\":\"cgam-net/1\"}", "text:3:"},
    {"", "text:1:"},
    /* meaning: the place */
    {"[]", "text: $: must be an object"},
    {"{}", "$: 'format' is missing"},
    {"{\"format\":\"cgam-net/2\"}", "$.format: 'cgam-net/2' is not cgam-net/1"},
    {"{\"format\":1}", "$.format: must be text, it is a number"},
    {"{\"format\":\"cgam-net/1\"}", "$.layers: must be a list of layers"},
    {"{\"format\":\"cgam-net/1\",\"layers\":[]}", "$.layers: must be a list of layers"},
    {"{\"format\":\"cgam-net/1\",\"layers\":[1]}", "$.layers[0]: must be an object"},
    {LAYERS ",\"layer\":1}", "$: no such key: 'layer'"},
    {HEAD ",{\"shape\":2}]}", "$.layers[1]: 'name' is missing"},
    {HEAD ",{\"name\":\"x\",\"shape\":2}]}", "$.layers[1]: layer 'x': the name is already used"},
    {HEAD ",{\"name\":\"y\"}]}", "$.layers[1].shape: must be an integer or a list"},
    {HEAD ",{\"name\":\"y\",\"shape\":0}]}", "$.layers[1]: layer 'y': shape 0 is empty"},
    {HEAD ",{\"name\":\"y\",\"shape\":[2,1.5]}]}", "$.layers[1].shape[1]: must be an integer"},
    {HEAD ",{\"name\":\"y\",\"shape\":[4000000000,4000000000]}]}", "$.layers[1]: layer 'y'"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"beta\":2}]}", "$.layers[1]: no such key: 'beta'"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"lagrangian\":\"soft\"}]}", "$.layers[1].lagrangian:"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"lagrangian\":\"softmax\",\"beta\":-1}]}",
     "$.layers[1]: layer 'y': beta of softmax is -1"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"tau\":\"fast\"}]}",
     "$.layers[1].tau: must be a number, it is text"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"init\":[1,2,3]}]}",
     "text: $.layers[1].init: holds 3 numbers, expected 2"},
    {HEAD ",{\"name\":\"y\",\"shape\":[2,2],\"init\":[[1,2],[3]]}]}",
     "$.layers[1].init[1]: 1 elements,"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"init\":[1,null]}]}",
     "$.layers[1].init[1]: must be a number, it is null"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"init\":[]}]}", "$.layers[1].init: an empty list"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"init\":true}]}", "$.layers[1].init: must be numbers or"},
    {HEAD ",{\"name\":\"y\",\"shape\":1,\"init\":[[[[[[[[[1]]]]]]]]]}]}",
     "$.layers[1].init: lists more than 8 deep"},
    {LAYERS ",\"weights\":[]}", "$.weights: must be an object of names"},
    {LAYERS ",\"weights\":{\"W\":[[1],[2,3]]}}", "$.weights.W[1]: 2 elements,"},
    {LAYERS ",\"weights\":{\"W\":{\"rows\":[[1]],\"file\":\"f\"}}}", "$.weights.W:"},
    {LAYERS ",\"weights\":{\"W\":{\"files\":\"f\"}}}", "$.weights.W: no such key: 'files'"},
    {LAYERS ",\"synapses\":{}}", "$.synapses: must be a list"},
    {SYNAPSE("1"), "$.synapses[0]: must be an object"},
    {SYNAPSE("{}"), "$.synapses[0]: 'kind' is missing"},
    {SYNAPSE("{\"kind\":\"linear\"}"), "$.synapses[0].kind:"},
    {SYNAPSE("{\"kind\":\"bias\",\"layers\":[\"y\"]}"),
     "$.synapses[0].layers[0]: no layer named 'y'"},
    {SYNAPSE("{\"kind\":\"bias\",\"layers\":[\"x\",\"x\"]}"),
     "$.synapses[0].layers: a bias synapse joins 1 layers"},
    {SYNAPSE("{\"kind\":\"bias\",\"layers\":[3]}"),
     "$.synapses[0].layers[0]: must be the name of a layer"},
    {SYNAPSE("{\"kind\":\"bias\",\"layers\":[\"x\"]}"), "$.synapses[0]: 'weights' is missing"},
    {SYNAPSE("{\"kind\":\"bias\",\"layers\":[\"x\"],\"weights\":[1,2,3]}"),
     "text: $.synapses[0].weights: holds 3 numbers, expected 2"},
    {SYNAPSE("{\"kind\":\"bias\",\"layers\":[\"x\"],\"weights\":1,\"beta\":1}"),
     "$.synapses[0]: no such key: 'beta'"},
    {SYNAPSE("{\"kind\":\"self\",\"layers\":[\"x\"],\"weights\":\"W\"}"),
     "$.synapses[0].weights: no weights named 'W'"},
    {SYNAPSE("{\"kind\":\"self\",\"layers\":[\"x\"],\"weights\":[[1,2]]}"),
     "$.synapses[0]: synapse 'self 0': weights are 1 x 2, layers 'x' and 'x' have sizes 2 and 2"},
    {SYNAPSE("{\"kind\":\"tensor\",\"layers\":[\"x\",\"x\",\"x\"],\"weights\":[[1,2],[3,4]]}"),
     "$.synapses[0].weights: 2 dimensions; dimension 0 must be 2 like layer 'x'"},
    {SYNAPSE("{\"kind\":\"lowrank\",\"layers\":[\"x\"],\"factors\":[]}"),
     "$.synapses[0].factors: must be a list of 1 factors"},
    {SYNAPSE("{\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"beta\":0}"),
     "$.synapses[0]: synapse 'attention 0': beta is 0"},
    {SYNAPSE("{\"kind\":\"hidden\",\"layers\":[\"x\"],\"weights\":[[1,2]],"
             "\"lagrangian\":\"softmax\",\"gamma\":2}"),
     "$.synapses[0]: 'gamma' is not a parameter of softmax"},
    {"{\"format\":\"cgam-net/1\",\"layers\":[{\"name\":\"x\",\"shape\":[2,64]}],\"synapses\":[{"
     "\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"heads\":65536,\"width\":1048576,"
     "\"query_weights\":1,\"key_weights\":1}]}",
     "text: $.synapses[0]: unsupported size: 65536 heads of width 1048576"},
    {SYNAPSE("{\"kind\":\"convolution\",\"layers\":[\"x\",\"x\"],\"kernels\":[[[[1]]]]}"),
     "$.synapses[0]: layers 'x' and 'x' must be images"},
    {SYNAPSE("{\"kind\":\"coupling\",\"layers\":[\"x\",\"x\"],\"name\":\"x\"}"),
     "$.synapses[0]: synapse 'x': the name is already used"},
    {LAYERS ",\"clamps\":[{}]}", "$.clamps[0]: 'layer' is missing"},
    {LAYERS ",\"clamps\":[{\"layer\":\"x\",\"from\":2,\"to\":1}]}",
     "text: $.clamps[0]: from is 2 and to is 1"},
    {LAYERS ",\"clamps\":[{\"layer\":\"x\"},{\"layer\":\"x\",\"from\":1}]}",
     "$.clamps[1]: overlaps clamp 0"},
    {LAYERS ",\"clamps\":[{\"layer\":\"x\",\"value\":[1]}]}",
     "text: $.clamps[0].value: holds 1 numbers, expected 2"},
    {LAYERS ",\"flow\":{\"method\":\"magic\"}}", "$.flow.method:"},
    {LAYERS ",\"flow\":{\"t_end\":-1}}", "$.flow.t_end: -1 must be above 0"},
    {LAYERS ",\"flow\":{\"watch\":\"y\"}}", "$.flow.watch: no layer named 'y'"},
    {LAYERS ",\"flow\":{\"stop\":[\"never\"]}}", "$.flow.stop[0]: must be \"steady\""},
    {LAYERS ",\"flow\":{\"stop\":[\"winner\"]}}", "$.flow.stop:"},
    /* of another kind than it should be */
    {LAYERS ",\"title\":1}", "$.title: must be text, it is a number"},
    {LAYERS ",\"about\":[]}", "$.about: must be text, it is a list"},
    {LAYERS ",\"title\":\"a\\u0000b\"}", "text:1:"},
    {LAYERS ",\"clamps\":{}}", "$.clamps: must be a list"},
    {LAYERS ",\"clamps\":[1]}", "$.clamps[0]: must be an object"},
    {LAYERS ",\"clamps\":[{\"layer\":\"y\"}]}", "$.clamps[0].layer: no layer named 'y'"},
    {LAYERS ",\"clamps\":[{\"layer\":\"x\",\"from\":\"now\"}]}",
     "$.clamps[0].from: must be a number"},
    {LAYERS ",\"clamps\":[{\"layer\":\"x\",\"to\":null}]}", "$.clamps[0].to: must be a number"},
    {LAYERS ",\"clamps\":[{\"layer\":\"x\",\"from\":-1}]}",
     "$.clamps[0]: from is -1 and to is inf"},
    {LAYERS ",\"clamps\":[{\"layer\":\"x\",\"value\":false}]}",
     "$.clamps[0].value: must be numbers"},
    {LAYERS ",\"flow\":1}", "$.flow: must be an object"},
    {LAYERS ",\"flow\":{\"rtol\":\"small\"}}", "$.flow.rtol: must be a number"},
    {LAYERS ",\"flow\":{\"settle\":-1}}", "$.flow.settle: -1 must be at least 0"},
    {LAYERS ",\"flow\":{\"max_steps\":1.5}}", "$.flow.max_steps: must be an integer"},
    {LAYERS ",\"flow\":{\"max_steps\":0}}", "$.flow: max_steps is 0"},
    {LAYERS ",\"flow\":{\"method\":3}}", "$.flow.method: must be text"},
    {LAYERS ",\"flow\":{\"watch\":3}}", "$.flow.watch: must be the name of a layer"},
    {LAYERS ",\"flow\":{\"stop\":\"steady\"}}", "$.flow.stop: must be a list"},
    {LAYERS ",\"flow\":{\"stop\":[1]}}", "$.flow.stop[0]: must be \"steady\""},
    {LAYERS ",\"flow\":{\"stop\":[\"start\"]}}", "$.flow.stop[0]: must be \"steady\""},
    {HEAD ",{\"name\":\"y\",\"shape\":[1,1,1,1,1,1,1,1,1]}]}",
     "$.layers[1].shape: must be an integer"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"axes\":-1}]}", "$.layers[1]: layer 'y': axes is 9"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"axes\":99}]}", "$.layers[1]: layer 'y': axes is 9"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"axes\":true}]}", "$.layers[1].axes: must be an integer"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"scale\":[]}]}", "$.layers[1].scale: must be a number"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"lagrangian\":[]}]}",
     "$.layers[1].lagrangian: must be text"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"lagrangian\":\"tanh\",\"beta\":{}}]}",
     "$.layers[1].beta: must be a number, it is an object"},
    {HEAD ",{\"name\":\"y\",\"shape\":[2,2],\"init\":[[1,2],3]}]}",
     "$.layers[1].init[1]: must be a list, it is a number"},
    {HEAD ",{\"name\":\"y\",\"shape\":1099511627774,\"init\":1}]}", "does not fit into memory"},
    {LAYERS ",\"weights\":{\"W\":{\"normalize\":1,\"rows\":[[1]]}}}",
     "$.weights.W.normalize: must be true or false"},
    {LAYERS ",\"weights\":{\"W\":{\"normalize\":true}}}", "$.weights.W: 'file' is missing"},
    {LAYERS ",\"weights\":{\"W\":{\"rows\":[[1],[]]}}}", "$.weights.W.rows[1]: 0 elements,"},
    {LAYERS ",\"weights\":{\"W\":[[1],[1e999]]}}", "text:1:"},
    /* synapses, kind by kind */
    {SYNAPSE("{\"kind\":1}"), "$.synapses[0].kind: must be text"},
    {SYNAPSE("{\"kind\":\"bias\",\"layers\":\"x\"}"),
     "$.synapses[0].layers: a bias synapse joins 1"},
    {SYNAPSE("{\"kind\":\"tensor\",\"layers\":[\"x\"]}"),
     "$.synapses[0].layers: a tensor synapse joins 2 to 8 layers"},
    {SYNAPSE("{\"kind\":\"bias\",\"layers\":[\"x\"],\"name\":2}"),
     "$.synapses[0].name: must be text"},
    {SYNAPSE("{\"kind\":\"bias\",\"layers\":[\"x\"],\"gain\":\"high\"}"),
     "$.synapses[0].gain: must be a number"},
    {SYNAPSE("{\"kind\":\"bilinear\",\"layers\":[\"x\",\"x\"]}"),
     "$.synapses[0]: 'weights' is missing"},
    {SYNAPSE("{\"kind\":\"gram\",\"layers\":[\"x\"],\"zero_diagonal\":0}"),
     "$.synapses[0].zero_diagonal: must be true or false"},
    {SYNAPSE("{\"kind\":\"gram\",\"layers\":[\"x\"]}"), "$.synapses[0]: 'weights' is missing"},
    {SYNAPSE("{\"kind\":\"gram\",\"layers\":[\"x\"],\"weights\":[[1],[2],[3]]}"),
     "weights are 3 x 1, layer 'x' has size 2"},
    {SYNAPSE("{\"kind\":\"tensor\",\"layers\":[\"x\",\"x\"]}"),
     "$.synapses[0]: 'weights' is missing"},
    {SYNAPSE("{\"kind\":\"tensor\",\"layers\":[\"x\",\"x\"],\"weights\":[[1,2],[3,4],[5,6]]}"),
     "$.synapses[0].weights: 2 dimensions; dimension 0 must be 2"},
    {SYNAPSE("{\"kind\":\"lowrank\",\"layers\":[\"x\"]}"),
     "$.synapses[0].factors: must be a list of 1"},
    {SYNAPSE("{\"kind\":\"lowrank\",\"layers\":[\"x\"],\"factors\":[true]}"),
     "$.synapses[0].factors[0]: must be numbers"},
    {SYNAPSE("{\"kind\":\"lowrank\",\"layers\":[\"x\"],\"factors\":[[[1,2]]],\"weights\":[1,2]}"),
     "$.synapses[0].weights: holds 2 numbers,"},
    {SYNAPSE("{\"kind\":\"hidden\",\"layers\":[\"x\"]}"), "$.synapses[0]: 'weights' is missing"},
    {SYNAPSE("{\"kind\":\"hidden\",\"layers\":[\"x\"],\"lagrangian\":\"none\"}"),
     "$.synapses[0].lagrangian:"},
    {SYNAPSE("{\"kind\":\"hidden\",\"layers\":[\"x\"],\"weights\":[[1,2,3]]}"),
     "weights are 1 x 3"},
    {SYNAPSE("{\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"beta\":\"b\"}"),
     "beta: must be a number"},
    {SYNAPSE("{\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"heads\":\"b\"}"),
     "heads: must be an integer"},
    {SYNAPSE("{\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"width\":\"b\"}"),
     "width: must be an integer"},
    {SYNAPSE("{\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"exclude_self\":1}"),
     "exclude_self: must be true or false"},
    {SYNAPSE("{\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"query_weights\":1}"),
     "$.synapses[0]: projections need a 'width'"},
    {SYNAPSE("{\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"key_weights\":1}"),
     "$.synapses[0]: projections need a 'width'"},
    {SYNAPSE("{\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"width\":-1}"),
     "1 heads of width -1"},
    {SYNAPSE("{\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"width\":2000000}"),
     "heads of width 2000000"},
    {SYNAPSE("{\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"width\":1,\"heads\":0}"),
     "0 heads of"},
    {SYNAPSE("{\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"width\":1,\"heads\":99999}"),
     "99999 heads of width 1"},
    {SYNAPSE("{\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"width\":1048576,\"heads\":65536,"
             "\"query_weights\":1}"),
     "137438953472 numbers do not fit into memory"},
    {SYNAPSE("{\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"width\":1}"),
     "$.synapses[0]: 'query_weights' is missing"},
    {SYNAPSE("{\"kind\":\"attention\",\"layers\":[\"x\",\"x\"],\"width\":1,\"query_weights\":1}"),
     "$.synapses[0]: 'key_weights' is missing"},
    {IMAGES "{}]}", "$.synapses[0]: 'kind' is missing"},
    {IMAGES CONVOLUTION "}]}", "$.synapses[0]: 'kernels' is missing"},
    {IMAGES CONVOLUTION ",\"kernels\":1,\"same\":1}]}", "same: must be true or false"},
    {IMAGES CONVOLUTION ",\"kernels\":1,\"stride_y\":1.5}]}", "stride_y: must be an integer"},
    {IMAGES CONVOLUTION ",\"kernels\":1,\"stride_x\":1.5}]}", "stride_x: must be an integer"},
    {IMAGES CONVOLUTION ",\"kernels\":true}]}", "$.synapses[0].kernels: must be numbers"},
    {IMAGES CONVOLUTION ",\"kernels\":[1]}]}", "kernels: must be 2 x 1 x height x width"},
    {IMAGES CONVOLUTION ",\"kernels\":[[[[1]]]]}]}", "kernels: must be 2 x 1 x height x width"},
    {IMAGES CONVOLUTION ",\"kernels\":[[[[1]],[[1]]],[[[1]],[[1]]]]}]}",
     "kernels: must be 2 x 1 x height x width"},
    {IMAGES CONVOLUTION ",\"kernels\":[[[[1]]],[[[1]]]],\"stride_x\":-1}]}", "a size is -1"},
    {IMAGES CONVOLUTION ",\"kernels\":[[[[1]]],[[[1]]]],\"stride_x\":2,\"stride_y\":2}]}",
     "weights are 2 x 4, layers 'to' and 'from' have sizes 8 and 4"},
    /* what comes after the first mistake is not looked at */
    {SYNAPSE("{\"kind\":\"bilinear\",\"layers\":[\"y\",\"z\"]}"), "layers[0]: no layer named 'y'"},
    {SYNAPSE("{\"kind\":\"lowrank\",\"layers\":[\"x\",\"x\"],\"factors\":[true,false]}"),
     "$.synapses[0].factors[0]: must be numbers"},
    {HEAD ",{\"name\":\"y\",\"shape\":2,\"lagrangian\":\"layer_norm\",\"gamma\":[],\"delta\":[]}]}",
     "$.layers[1].gamma: must be a number"},
    {HEAD ",{\"name\":\"y\",\"shape\":[2,2],\"init\":[[1,null],[null,1]]}]}",
     "$.layers[1].init[0][1]: must be a number"},
    {HEAD
     ",{\"name\":\"s\",\"shape\":[]},{\"name\":\"w\",\"shape\":[2,64]}],\"synapses\":[{\"kind\":"
     "\"attention\",\"layers\":[\"w\",\"s\"],\"width\":1048576,\"heads\":65536}]}",
     "65536 heads of width 1048576"},
    {HEAD
     ",{\"name\":\"s\",\"shape\":[]}],\"synapses\":[{\"kind\":\"attention\",\"layers\":[\"s\",\"x\"],"
     "\"width\":1,\"query_weights\":1,\"key_weights\":1}]}",
     "layer 's' has 0 dimensions, attention needs 1 or 2"},
    {"{\"format\":\"cgam-net/1\",\"layers\":[{\"name\":\"from\",\"shape\":[2,2,1]},{\"name\":\"to\","
     "\"shape\":2}],\"synapses\":[" CONVOLUTION "}]}",
     "layers 'to' and 'from' must be images"},
};

TEST_ENV(mistakes_are_named_by_line_or_place)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        cgam_net_file file;
        cgam_status status = cgam_net_file_parse(env, "text", mistakes[i].text,
                                                 strlen(mistakes[i].text), NULL, &file);
        if (status == CGAM_OK) fail_msg("accepted: %s", mistakes[i].text);
        CHECK_MESSAGE(env, mistakes[i].message);
        assert_null(file.net);
        assert_null(file.owner);
    }
}

/* Lists of 300, eight deep, of which only the first of each is a list: a few kilobytes that promise 300^8 numbers. */
TEST_ENV(a_promise_of_too_many_numbers_is_refused)
{
    char text[8 * 3000];
    FILE *to = fmemopen(text, sizeof text, "w");
    assert_non_null(to);
    fputs(LAYERS ",\"weights\":{\"W\":[[[[[[[[1", to);
    for (int depth = 0; depth < 8; depth++) {
        for (int i = 1; i < 300; i++) fputs(",1", to);
        fputs("]", to);
    }
    fputs("}}", to);
    fclose(to);
    cgam_net_file file;
    CHECK_REFUSED(env, CGAM_E_FORMAT, "$.weights.W: too many numbers",
                  cgam_net_file_parse(env, "text", text, strlen(text), NULL, &file));
}

/* Weights as W.npy of the document's folder: 64-bit floats, integers, none, and a path that is none. */
static int open_with_file(cgam_env *env, void *arg)
{
    static const char text[] =
        "{\"format\":\"cgam-net/1\",\"layers\":[{\"name\":\"x\",\"shape\":2,\"init\":{\"file\":\"b.npy\"}}],"
        "\"synapses\":[{\"kind\":\"gram\",\"layers\":[\"x\"],\"weights\":{\"file\":\"W.npy\"}},"
        "{\"kind\":\"bias\",\"layers\":[\"x\"],\"weights\":{\"rows\":[3,4],\"normalize\":true}}]}";
    cgam_net_file file;
    cgam_status status = cgam_net_file_parse(env, "text", text, strlen(text), arg, &file);
    double E = 0;
    if (status == CGAM_OK)
        status = cgam_net_eval(file.net, 1, file.x, NULL, &(cgam_net_values){.energy = &E});
    /* x = (1, 2), W = 1 with its diagonal taken off: |x|^2 / 2 - (3 + 8) / 5 */
    if (status == CGAM_OK && fabs(E - (2.5 - 2.2)) > 1e-14) status = CGAM_E_INTERNAL;
    cgam_net_file_close(&file);
    return status;
}

TEST_ENV(files_of_weights_are_opened_where_they_are)
{
    char dir[] = "/tmp/cgam-net-XXXXXX", path[64], text[5000];
    const double W[] = {1, 0, 0, 1}, b[] = {1, 2};
    const int64_t square[] = {2, 2}, two = 2, none[] = {0, 2}, whole[] = {1, 2};
    cgam_net_file file;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/b.npy", dir);
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F64, 1, &two, b));
    snprintf(path, sizeof path, "%s/W.npy", dir);
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F64, 2, square, W));
    assert_true(check_every_allocation(open_with_file, dir) > 10);
    static const char form[] =
        "{\"format\":\"cgam-net/1\",\"layers\":[{\"name\":\"x\",\"shape\":2}],\"synapses\":[{\"kind\":"
        "\"self\",\"layers\":[\"x\"],\"weights\":{\"file\":\"%s\"}}]}";
    snprintf(text, sizeof text, form, path);
    CHECK_STATUS(env, cgam_net_file_parse(env, "text", text, strlen(text), "/nowhere", &file));
    cgam_net_file_close(&file);
    /* the document itself, by a path without a folder */
    char here[512], name[] = "net.json";
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(dir), 0);
    FILE *to = fopen(name, "w");
    fprintf(to, form, "W.npy");
    fclose(to);
    CHECK_STATUS(env, cgam_net_file_open(env, name, &file));
    cgam_net_file_close(&file);
    unlink(name);
    CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_net_file_open(env, name, &file));
    assert_int_equal(chdir(here), 0);
    snprintf(text, sizeof text, form, "W.npy");
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F64, 2, none, W));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "'W.npy' holds no numbers",
                  cgam_net_file_parse(env, "text", text, strlen(text), dir, &file));
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_I64, 2, whole, W));
    CHECK_REFUSED(env, CGAM_E_UNSUPPORTED, "weights cannot be i64",
                  cgam_net_file_parse(env, "text", text, strlen(text), dir, &file));
    char longer[4200];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    snprintf(text, sizeof text, form, longer);
    CHECK_REFUSED(env, CGAM_E_FORMAT, "a path of 42",
                  cgam_net_file_parse(env, "text", text, strlen(text), dir, &file));
    unlink(path);
    snprintf(path, sizeof path, "%s/b.npy", dir);
    unlink(path);
    rmdir(dir);
}

static int open_example(cgam_env *env, void *arg)
{
    cgam_net_file file;
    cgam_status status = cgam_net_file_open(env, arg, &file);
    cgam_net_file_close(&file);
    return status;
}

/* Every kind of synapse, weights in each of their forms, a clamp with values, all that a flow can be told. */
static const char everything[] =
    "{\"format\":\"cgam-net/1\",\"title\":\"everything\",\"about\":\"once\",\"layers\":["
    "{\"name\":\"x\",\"shape\":[2,2,1],\"lagrangian\":\"tanh\",\"beta\":2,\"init\":0.5},"
    "{\"name\":\"y\",\"shape\":[2,2,1],\"init\":[[[1],[2]],[[3],[4]]]},"
    "{\"name\":\"z\",\"shape\":[2,2]},{\"name\":\"s\",\"shape\":[]}],"
    "\"weights\":{\"W\":{\"rows\":[[3,4,0,0],[0,0,0,0],[1,0,0,0],[0,1,0,0]],\"normalize\":true},"
    "\"one\":2,\"U\":[[1,0,0,1]],\"T\":[[1],[2],[3],[4]]},\"synapses\":["
    "{\"kind\":\"bilinear\",\"layers\":[\"x\",\"y\"],\"weights\":\"W\"},"
    "{\"kind\":\"self\",\"layers\":[\"x\"],\"weights\":\"W\"},"
    "{\"kind\":\"gram\",\"layers\":[\"x\"],\"weights\":\"W\",\"zero_diagonal\":false},"
    "{\"kind\":\"gram\",\"layers\":[\"y\"],\"weights\":[[1],[2],[3],[4]]},"
    "{\"kind\":\"coupling\",\"layers\":[\"x\",\"y\"],\"gain\":2},"
    "{\"kind\":\"bias\",\"layers\":[\"x\"],\"weights\":1},"
    "{\"kind\":\"bias\",\"layers\":[\"s\"],\"weights\":{\"rows\":3,\"normalize\":true}},"
    "{\"kind\":\"self\",\"layers\":[\"s\"],\"weights\":\"one\"},"
    "{\"kind\":\"tensor\",\"layers\":[\"x\",\"s\"],\"weights\":\"T\"},"
    "{\"kind\":\"lowrank\",\"layers\":[\"x\",\"y\"],\"factors\":[\"U\",\"U\"],\"weights\":[2]},"
    "{\"kind\":\"lowrank\",\"layers\":[\"x\"],\"factors\":[[[1,2,3,4]]]},"
    "{\"kind\":\"hidden\",\"layers\":[\"x\"],\"weights\":\"U\",\"lagrangian\":\"softmax\",\"beta\":3},"
    "{\"kind\":\"attention\",\"layers\":[\"z\",\"z\"],\"exclude_self\":true},"
    "{\"kind\":\"attention\",\"layers\":[\"z\",\"z\"],\"heads\":2,\"width\":1,"
    "\"query_weights\":[1,2,3,4],\"key_weights\":0.5},"
    "{\"kind\":\"convolution\",\"layers\":[\"y\",\"x\"],\"kernels\":[[[[1,2],[3,4]]]],"
    "\"same\":true}],"
    "\"clamps\":[{\"layer\":\"x\",\"from\":1,\"to\":3},{\"layer\":\"y\",\"from\":1},"
    "{\"layer\":\"x\",\"value\":2,\"to\":1}],"
    "\"flow\":{\"method\":\"euler\",\"t_end\":1,\"max_steps\":7,\"stop\":[]}}";

static int parse_text(cgam_env *env, void *arg)
{
    cgam_net_file file;
    cgam_status status = cgam_net_file_parse(env, "text", arg, strlen(arg), NULL, &file);
    cgam_net_file_close(&file);
    cgam_net_file_close(NULL);
    return status;
}

TEST_ENV(every_kind_of_synapse_can_be_written)
{
    cgam_net_file file;
    CHECK_STATUS(env,
                 cgam_net_file_parse(env, "text", everything, strlen(everything), NULL, &file));
    assert_int_equal(cgam_net_synapses(file.net), 15);
    const double *s = file.x + cgam_net_layer(file.net, 1).offset;
    CHECK_CLOSE_ALL(s, ((const double[]){1, 2, 3, 4}), 4, 0);
    CHECK_CLOSE(file.x[0], 0.5, 0);
    double parts[19];
    CHECK_STATUS(env, cgam_net_eval(file.net, 1, file.x, NULL, &(cgam_net_values){.parts = parts}));
    /* W has unit rows, one of them zero: x'Wx / 2 at a = tanh(1) (1, 1, 1, 1) */
    CHECK_CLOSE(parts[4 + 1], 0.5 * tanh(1) * tanh(1) * (0.6 + 0.8 + 1 + 1), 1e-14);
    /* 'same' keeps four places; each output sums what of [[1, 2], [3, 4]] lies on the image */
    CHECK_CLOSE(parts[4 + 14], -tanh(1) * (1 * 10 + 2 * 4 + 3 * 3 + 4 * 1), 1e-13);
    assert_int_equal(file.flow.max_steps, 7);
    assert_int_equal(file.flow.stop, 0);
    assert_int_equal(file.flow.clamp_count, 3);
    cgam_net_file_close(&file);
}

TEST(every_failed_allocation_comes_back)
{
    char text[sizeof everything];
    memcpy(text, everything, sizeof text);
    assert_true(check_every_allocation(parse_text, text) > 50);
    static const char *const names[] = {"two_stage", "hopfield", "higher_order"};
    for (int i = 0; i < 3; i++) {
        char path[512];
        snprintf(path, sizeof path, "examples/%s.json", names[i]);
        char *full = strdup(check_source_path(path));
        assert_true(check_every_allocation(open_example, full) > 10);
        free(full);
    }
}
